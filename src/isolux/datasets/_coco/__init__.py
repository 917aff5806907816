"""The COCO JSON layout, which several datasets use."""
