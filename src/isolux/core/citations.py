"""Works that several packages cite: each is written once, its place named where it is cited."""

from __future__ import annotations

from isolux.core.info import Reference

BDD100K = Reference(
    "bdd100k",
    "Yu, F., Chen, H., Wang, X., Xian, W., Chen, Y., Liu, F., Madhavan, V., & Darrell, T. "
    "(2020). BDD100K: A diverse driving dataset for heterogeneous multitask learning. In "
    "Proceedings of the IEEE/CVF Conference on Computer Vision and Pattern Recognition (CVPR)"
    " (pp. 2636–2645).",
    url="https://www.bdd100k.com",
)
CELEBA = Reference(
    "celeba",
    "Liu, Z., Luo, P., Wang, X., & Tang, X. (2015). Deep learning face attributes in the "
    "wild. In Proceedings of the IEEE International Conference on Computer Vision (ICCV) (pp."
    " 3730–3738).",
    url="https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
)
CELEBAMASK_HQ = Reference(
    "celebamask-hq",
    "Lee, C.-H., Liu, Z., Wu, L., & Luo, P. (2020). MaskGAN: Towards diverse and interactive "
    "facial image manipulation. In Proceedings of the IEEE/CVF Conference on Computer Vision "
    "and Pattern Recognition (CVPR) (pp. 5549–5558).",
    url="https://github.com/switchablenorms/CelebAMask-HQ",
)
COCO = Reference(
    "coco",
    "Lin, T.-Y., Maire, M., Belongie, S., Hays, J., Perona, P., Ramanan, D., Dollár, P., & "
    "Zitnick, C. L. (2014). Microsoft COCO: Common objects in context. In European Conference"
    " on Computer Vision (ECCV) (pp. 740–755).",
    url="https://cocodataset.org",
)
DATASHEETS = Reference(
    "datasheets",
    "Gebru, T., Morgenstern, J., Vecchione, B., Wortman Vaughan, J., Wallach, H., Daumé III, "
    "H., & Crawford, K. (2021). Datasheets for datasets. Communications of the ACM, 64(12), "
    "86–92.",
    url="https://doi.org/10.1145/3458723",
)
EXIF = Reference(
    "exif-3",
    "CIPA and JEITA (2023). Exchangeable image file format for digital still cameras: Exif "
    "version 3.0. CIPA DC-008.",
    url="https://www.cipa.jp/e/std/std-sec.html",
)
FACET = Reference(
    "facet",
    "Gustafson, Rolland, Ravi, Duval, Adcock, Fu, Hall & Ross (2023). FACET: Fairness in "
    "Computer Vision Evaluation Benchmark. ICCV.",
    url="https://arxiv.org/abs/2309.00035",
)
FAIRFACE = Reference(
    "fairface",
    "Kärkkäinen, K., & Joo, J. (2021). FairFace: Face attribute dataset for balanced race, "
    "gender, and age for bias measurement and mitigation. In Proceedings of the IEEE/CVF "
    "Winter Conference on Applications of Computer Vision (WACV) (pp. 1548–1558).",
    url="https://github.com/joojs/fairface",
)
FAIRNESS_INDICATORS = Reference(
    "fairness-indicators",
    "Goyal, P., Romero Soriano, A., Hazirbas, C., Sagun, L., & Usunier, N. (2022). Fairness "
    "indicators for systematic assessments of visual feature extractors. In Proceedings of the "
    "2022 ACM Conference on Fairness, Accountability, and Transparency (FAccT).",
    url="https://arxiv.org/abs/2202.07603",
)
FHIBE = Reference(
    "fhibe",
    "Xiang, A., Andrews, J. T. A., Bourke, R. L., Thong, W., LaChance, J. M., Georgievski, "
    "T., et al. (2025). Fair human-centric image dataset for ethical AI benchmarking. Nature.",
    url="https://fairnessbenchmark.ai.sony",
)
HOIEM = Reference(
    "hoiem",
    "Hoiem, D., Chodpathumwan, Y., & Dai, Q. (2012). Diagnosing error in object detectors. In"
    " European Conference on Computer Vision (ECCV) (pp. 340–353).",
    url="https://doi.org/10.1007/978-3-642-33712-3_25",
)
HOLM = Reference(
    "holm-1979",
    "Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian "
    "Journal of Statistics 6(2), 65-70.",
)
LPIPS = Reference(
    "lpips",
    "Zhang, R., Isola, P., Efros, A. A., Shechtman, E., & Wang, O. (2018). The unreasonable "
    "effectiveness of deep features as a perceptual metric. In Proceedings of the IEEE/CVF "
    "Conference on Computer Vision and Pattern Recognition (CVPR) (pp. 586–595).",
    url="https://github.com/richzhang/PerceptualSimilarity",
)
WESTFALL_YOUNG = Reference(
    "westfall-young-1993",
    "Westfall, P. H., & Young, S. S. (1993). Resampling-Based Multiple Testing. Wiley.",
)
WIDER_FACE = Reference(
    "widerface",
    "Yang, S., Luo, P., Loy, C. C., & Tang, X. (2016). WIDER FACE: A face detection "
    "benchmark. In Proceedings of the IEEE Conference on Computer Vision and Pattern "
    "Recognition (CVPR) (pp. 5525–5533).",
    url="http://shuoyang1213.me/WIDERFACE/",
)
FIFTYONE = Reference(
    "fiftyone",
    "Moore, B. E., & Corso, J. J. (2020). FiftyOne. Voxel51.",
    "the format: FiftyOneDataset, in Exporting FiftyOne Datasets",
    "https://docs.voxel51.com/user_guide/export_datasets.html#fiftyonedataset",
)
JSON = Reference(
    "rfc8259",
    "Bray, T. (Ed.). (2017). The JavaScript Object Notation (JSON) data interchange format. RFC "
    "8259, STD 90.",
    url="https://www.rfc-editor.org/rfc/rfc8259",
)
