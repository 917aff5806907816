"""A decision as JUnit XML, which CI systems read: a test case a rule.

``fail`` is a failure. ``insufficient`` is an error: a skipped test would be shown in green.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from isolux.policy.decision import Decision
from isolux.report.wording import plain


def decision_junit(decision: Decision) -> str:
    """Write the XML: one suite named by the policy, one case for each rule."""
    answers = [one.answer for one in decision.rules]
    counts = {
        "tests": str(len(answers)),
        "failures": str(answers.count("fail")),
        "errors": str(answers.count("insufficient")),
        "skipped": "0",
        "time": "0",
    }
    root = ET.Element("testsuites", {"name": "isolux gate", **counts})
    suite = ET.SubElement(
        root, "testsuite", {"name": _text(decision.policy or "isolux gate"), **counts}
    )
    listed = ET.SubElement(suite, "properties")
    for name, value in (("run", decision.run), ("baseline", decision.baseline),
                        *([("unasked", decision.unasked)] if decision.unasked else []),
                        *((k, str(v)) for k, v in decision.about.items())):  # fmt: skip
        ET.SubElement(listed, "property", {"name": name, "value": _text(value)})
    for one in decision.rules:
        case = ET.SubElement(
            suite, "testcase",
            {"classname": "isolux.gate", "name": _text(f"{one.place}. {one.title}"), "time": "0"},
        )  # fmt: skip
        if one.answer != "pass":
            kind = "failure" if one.answer == "fail" else "error"
            told = ET.SubElement(case, kind, {"type": one.answer, "message": _text(one.text)})
            told.text = _text(one.text)
        ET.SubElement(case, "system-out").text = _text(one.text)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _text(text: str) -> str:
    return plain(text)
