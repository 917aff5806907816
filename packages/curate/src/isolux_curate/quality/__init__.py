"""Quality of collected data: review samples, agreement with specialists, suspicious photos.

Source: Sony AI (2025) (FHIBE), Methods: "Quality control and data filtering", "Detection and
removal of suspicious images" and "Annotation QA". Numbers that it prints are named defaults.
"""
