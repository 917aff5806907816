"""The head: skull and jaw, ears, eyes, brows, nose, lips, age lines, beard.

Places are those of the face's frame (−1 to 1 across the face's box); eyes, nose and mouth stand
where the joints say, so that key points fit what is painted.
"""

from __future__ import annotations

from isolux_worlds.drawing.anatomy import PersonFigure, build_symmetric_outline
from isolux_worlds.drawing.canvas import Canvas, Paint, Point
from isolux_worlds.drawing.colour import WHITE, darken, lighten, mix_colours

__all__ = ["paint_head"]

_DETAIL_PX, _FINE_PX = 5.0, 14.0
"""Half a face's width from which eyes and lips are painted, and from which lids and wrinkles."""


def paint_head(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint a bald head with its face; hair and what is worn come after."""
    _paint_ears(canvas, figure)
    _paint_bald_skull(canvas, figure)
    if figure.face.half_width < _DETAIL_PX:
        _paint_minimal_face(canvas, figure)
        return
    _paint_face_shading(canvas, figure)
    if figure.words["facial_hair"] == "yes":
        _paint_beard(canvas, figure)
    _paint_mouth(canvas, figure)
    _paint_nose(canvas, figure)
    for body_side in ("right", "left"):
        _paint_eye(canvas, figure, body_side)
        _paint_eyebrow(canvas, figure, body_side)
    if figure.face.half_width >= _FINE_PX:
        _paint_age_lines(canvas, figure)


def _paint_ears(canvas: Canvas, figure: PersonFigure) -> None:
    face, skin = figure.face, figure.look.skin
    for body_side, sign in (("right", -1.0), ("left", 1.0)):
        _, y = face.to_local(figure.joints[f"{body_side}_ear"])
        centre = face.to_pixel(1.0 * sign, y)
        rx, ry = 0.13 * face.half_width, 0.23 * face.half_height
        with canvas.as_part(figure.owner, f"{body_side}_ear"):
            canvas.ellipse(centre, rx, ry, Paint(skin.tone, round=0.35), face.turn + 0.12 * sign)
        inner = Paint(skin.shadow, alpha=0.55, soft=rx * 0.5)
        canvas.ellipse(centre, rx * 0.5, ry * 0.6, inner, face.turn)


def _paint_bald_skull(canvas: Canvas, figure: PersonFigure) -> None:
    face, look = figure.face, figure.look
    j, chin = look.jaw, look.chin
    skull = [(0.5, -1.34), (0.84, -1.04), (0.985, -0.6), (1.0, -0.15), (0.97, 0.18)]
    jaw = [(0.93 * j + 0.03, 0.5), (0.70 * j, 0.78), (0.36 * j, 0.97 * chin)]
    outline = build_symmetric_outline((0.0, -1.46), [*skull, *jaw], (0.0, 1.01 * chin))
    across = (*face.to_pixel(-1.0, 0.0), *face.to_pixel(1.0, 0.0))
    with canvas.as_part(figure.owner, "face_skin"):
        canvas.blob(
            face.to_pixels(outline), Paint(look.skin.tone, round=0.38, across=across), steps=5
        )


def _paint_minimal_face(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint a face of a few pixels: two dark eyes and a mouth, lightly."""
    skin, width = figure.look.skin, figure.face.half_width
    for body_side in ("right", "left"):
        eye_point = figure.joints[f"{body_side}_eye"]
        canvas.ellipse(eye_point, 0.2 * width, 0.13 * width, Paint(skin.line, alpha=0.75))
    mouth = figure.mouth_midpoint
    canvas.ellipse(mouth, 0.3 * width, 0.1 * width, Paint(skin.upper_lip, alpha=0.8))


def _paint_face_shading(canvas: Canvas, figure: PersonFigure) -> None:
    """Soft light and shade that give the face its relief."""
    face, skin = figure.face, figure.look.skin
    w, h = face.half_width, face.half_height
    shade = Paint(skin.shadow, alpha=0.24, soft=0.34 * w)
    with canvas.only_on(figure.owner, "face_skin"):
        canvas.ellipse(face.to_pixel(0.0, 1.02), 0.62 * w, 0.16 * h, shade, face.turn)
        for sign in (-1.0, 1.0):
            _, y = face.to_local(figure.joints["right_eye" if sign < 0 else "left_eye"])
            socket = face.to_pixel(0.43 * sign, y - 0.02)
            canvas.ellipse(
                socket, 0.27 * w, 0.17 * h, Paint(skin.shadow, alpha=0.17, soft=0.2 * w), face.turn
            )
            cheek = face.to_pixel(0.56 * sign, y + 0.48)
            canvas.ellipse(
                cheek, 0.24 * w, 0.17 * h, Paint(skin.blush, alpha=0.28, soft=0.3 * w), face.turn
            )
            bone = face.to_pixel(0.5 * sign, y + 0.3)
            canvas.ellipse(
                bone, 0.2 * w, 0.07 * h, Paint(skin.sheen, alpha=0.4, soft=0.2 * w), face.turn
            )
        brow = face.to_pixel(0.0, -0.72)
        canvas.ellipse(
            brow, 0.4 * w, 0.2 * h, Paint(skin.sheen, alpha=0.35, soft=0.4 * w), face.turn
        )


def _paint_mouth(canvas: Canvas, figure: PersonFigure) -> None:
    face, look = figure.face, figure.look
    rx, ry = face.to_local(figure.joints["mouth_right"])
    lx, ly = face.to_local(figure.joints["mouth_left"])
    x, y, half = (rx + lx) / 2, (ry + ly) / 2, abs(lx - rx) / 2
    full = 0.062 * look.lips
    corner = -0.012
    bow = [(-1.0, corner), (-0.45, -full * 0.72), (-0.14, -full)]
    line = [(-0.4, 0.028), (0.0, 0.034), (0.4, 0.028)]
    top = [*bow, (0.0, -full * 0.78), *_mirror_points_horizontally(bow), *reversed(line)]
    lower_lip = [(0.45, 0.04 + full * 1.05), (0.0, 0.05 + full * 1.25), (-0.45, 0.04 + full * 1.05)]
    low = [(-0.94, 0.006), *line, (0.94, 0.006), *lower_lip]
    upper, lower = ([(x + dx * half, y + dy) for dx, dy in lip] for lip in (top, low))
    with canvas.as_part(figure.owner, "lower_lip"):
        canvas.blob(face.to_pixels(lower), look.skin.lower_lip, steps=4)
    with canvas.as_part(figure.owner, "upper_lip"):
        canvas.blob(face.to_pixels(upper), look.skin.upper_lip, steps=4)
    w, h = face.half_width, face.half_height
    if w < _FINE_PX:
        return
    arc = ((-1.0, corner), (-0.4, 0.026), (0.0, 0.032), (0.4, 0.026), (1.0, corner))
    smile = [(x + dx * half, y + dy) for dx, dy in arc]
    with canvas.as_part(figure.owner, "inner_mouth"):
        canvas.curve(face.to_pixels(smile), max(0.9, 0.022 * h), darken(look.skin.upper_lip, 0.55))
    gloss = Paint(lighten(look.skin.lower_lip, 0.4), alpha=0.4, soft=0.06 * w)
    with canvas.only_on(figure.owner, "lower_lip"):
        canvas.ellipse(face.to_pixel(x, y + 0.07 + full * 0.3), 0.3 * half * w, 0.022 * h, gloss)
    under = Paint(look.skin.shadow, alpha=0.4, soft=0.1 * w)
    with canvas.only_on(figure.owner, "face_skin"):
        canvas.ellipse(face.to_pixel(x, y + 0.13 + full * 1.25), 0.5 * half * w, 0.04 * h, under)


def _paint_nose(canvas: Canvas, figure: PersonFigure) -> None:
    face, look = figure.face, figure.look
    x, y = face.to_local(figure.joints["nose"])
    _, eye = face.to_local(figure.joint_midpoint("eye"))
    wide = 0.225 * look.nose
    w, h = face.half_width, face.half_height
    flanks = [(0.10, y - 0.2), (wide, y + 0.03), (0.6 * wide, y + 0.13)]
    around = [(0.07, eye - 0.02), *flanks, (0.0, y + 0.155), *_mirror_points_horizontally(flanks)]
    bridge = [(x + dx, bridge_y) for dx, bridge_y in ((-0.07, eye - 0.02), *around)]
    across = (*face.to_pixel(x - wide, y), *face.to_pixel(x + wide, y))
    with canvas.as_part(figure.owner, "nose"):
        canvas.blob(
            face.to_pixels(bridge), Paint(look.skin.tone, round=0.5, across=across), steps=4
        )
    shadow_sign = -1.0 if canvas.light[0] > 0 else 1.0
    shadow_paint = Paint(look.skin.shadow, alpha=0.5, soft=0.1 * w)
    with canvas.only_on(figure.owner):
        canvas.ellipse(
            face.to_pixel(x, y + 0.17), 0.8 * wide * w, 0.035 * h, shadow_paint, face.turn
        )
        flank = face.to_pixel(x + shadow_sign * 0.12, (eye + y) / 2 + 0.06)
        canvas.ellipse(flank, 0.05 * w, 0.25 * h, shadow_paint, face.turn)
        shine = Paint(look.skin.sheen, alpha=0.75, soft=0.12 * w)
        canvas.ellipse(face.to_pixel(x, y - 0.02), 0.07 * w, 0.055 * h, shine, face.turn)
        canvas.ellipse(face.to_pixel(x, eye + 0.2), 0.03 * w, 0.16 * h, shine, face.turn)
        if w >= _FINE_PX:
            hole = Paint(look.skin.line, alpha=0.85, soft=0.03 * w)
            for sign in (-1.0, 1.0):
                nostril = face.to_pixel(x + sign * 0.48 * wide, y + 0.112)
                canvas.ellipse(nostril, 0.30 * wide * w, 0.024 * h, hole, face.turn - 0.2 * sign)
                edge = ((0.86, -0.03), (1.04, 0.045), (0.84, 0.105))
                wing = [(x + sign * wide * dx, y + dy) for dx, dy in edge]
                canvas.curve(face.to_pixels(wing), 0.028 * w, Paint(look.skin.line, alpha=0.45))


def _build_eye_outline(inner: Point, outer: Point, tall: float) -> list[Point]:
    """Almond from the inner to the outer corner."""
    (ix, iy), (ox, oy) = inner, outer
    d = ox - ix

    def along(t: float, up: float) -> Point:
        return ix + d * t, iy + (oy - iy) * t + up

    upper = [along(t, -tall * up) for t, up in ((0.25, 0.8), (0.52, 1.05), (0.8, 0.72))]
    lower = [along(t, tall * down) for t, down in ((0.75, 0.62), (0.45, 0.78), (0.2, 0.5))]
    return [inner, *upper, outer, *lower]


def _paint_eye(canvas: Canvas, figure: PersonFigure, body_side: str) -> None:
    face, look = figure.face, figure.look
    x, y = face.to_local(figure.joints[f"{body_side}_eye"])
    sign = -1.0 if body_side == "right" else 1.0
    w, h = face.half_width, face.half_height
    size = 0.235 * look.eye
    tall = 0.088 * look.eye
    inner, outer = (x - sign * size, y + 0.012), (x + sign * size * 1.02, y - 0.016)
    outline = _build_eye_outline(inner, outer, tall)
    white = mix_colours((246.0, 243.0, 238.0), look.skin.tone, 0.12)
    with canvas.as_part(figure.owner, f"{body_side}_eye"):
        canvas.blob(face.to_pixels(outline), white, steps=4)
    centre, r = face.to_pixel(x, y - 0.006), 0.112 * look.eye * w
    with canvas.only_on(figure.owner, f"{body_side}_eye"):
        canvas.ellipse(centre, r, r, darken(look.iris, 0.35))
        canvas.ellipse(centre, r * 0.82, r * 0.82, Paint(look.iris, soft=0.3 * r))
        canvas.ellipse(centre, r * 0.45, r * 0.45, (12.0, 10.0, 10.0))
        shadow = Paint(darken(look.skin.shadow, 0.5), alpha=0.4, soft=0.06 * h)
        canvas.ellipse(face.to_pixel(x, y - tall), size * w, 0.035 * h, shadow, face.turn)
    if w < _FINE_PX:
        lid = [inner, (x, y - tall), outer]
        canvas.curve(face.to_pixels(lid), max(0.8, 0.05 * w), Paint(look.skin.line, alpha=0.8))
        return
    glint = Paint(WHITE, alpha=0.9)
    canvas.ellipse((centre[0] + 0.3 * r, centre[1] - 0.35 * r), 0.2 * r, 0.2 * r, glint)
    _paint_eyelids(canvas, figure, outline, sign)


def _paint_eyelids(canvas: Canvas, figure: PersonFigure, outline: list[Point], sign: float) -> None:
    face, look = figure.face, figure.look
    w = face.half_width
    ink = darken(look.skin.line, 0.55)
    upper, lower = outline[:5], [outline[k] for k in (4, 5, 6, 7, 0)]
    heavy = (0.036 + 0.028 * look.feminine) * w
    canvas.curve(face.to_pixels(upper), heavy, Paint(ink, alpha=0.95))
    canvas.curve(face.to_pixels(lower), 0.016 * w, Paint(look.skin.line, alpha=0.5))
    crease = [(x, y - 0.06) for x, y in upper[1:4]]
    canvas.curve(face.to_pixels(crease), 0.02 * w, Paint(look.skin.line, alpha=0.45))
    if look.feminine >= 0.5:
        corner = outline[4]
        wing = [outline[3], corner, (corner[0] + sign * 0.05, corner[1] - 0.05)]
        canvas.curve(face.to_pixels(wing), 0.03 * w, Paint(ink, alpha=0.8))


def _paint_eyebrow(canvas: Canvas, figure: PersonFigure, body_side: str) -> None:
    face, look = figure.face, figure.look
    x, y = face.to_local(figure.joints[f"{body_side}_eye"])
    s = -1.0 if body_side == "right" else 1.0
    y -= 0.245
    thick = 0.042 * look.brow * (1.0 - 0.25 * look.feminine)
    arch = 0.05 + 0.03 * look.feminine
    upper_edge = [(-0.25, -thick * 0.2), (-0.23, -thick - 0.4 * arch), (0.06, -arch - thick)]
    lower_edge = [(0.32, 0.015), (0.05, -arch + thick), (-0.2, thick * 0.9)]
    outline = [(x + s * dx, y + dy) for dx, dy in (*upper_edge, *lower_edge)]
    hair = darken(look.hair, 0.25) if sum(look.hair) > 180 else look.hair
    with canvas.as_part(figure.owner, f"{body_side}_eyebrow"):
        canvas.blob(face.to_pixels(outline), Paint(hair, alpha=0.92), steps=3)


def _paint_age_lines(canvas: Canvas, figure: PersonFigure) -> None:
    """Lines around the mouth, under the eyes, on the brow: none before 30, more with the years."""
    face, look = figure.face, figure.look
    depth = min(1.0, max(0.0, (look.age - 32) / 45.0))
    if depth == 0.0:
        return
    w = face.half_width
    line = Paint(look.skin.line, alpha=0.10 + 0.38 * depth)
    _, mouth = face.to_local(figure.joints["mouth_right"])
    _, eye = face.to_local(figure.joint_midpoint("eye"))
    nose_x, nose_y = face.to_local(figure.joints["nose"])
    with canvas.only_on(figure.owner, "face_skin"):
        for s in (-1.0, 1.0):
            start = (nose_x + 0.27 * s, nose_y + 0.06)
            fold = [start, (0.40 * s, mouth - 0.1), (0.45 * s, mouth + 0.06)]
            canvas.curve(face.to_pixels(fold), 0.03 * w, line)
            bag = [(0.24 * s, eye + 0.13), (0.44 * s, eye + 0.18), (0.62 * s, eye + 0.12)]
            canvas.curve(face.to_pixels(bag), 0.022 * w, line)
            if look.age >= 50:
                for k in range(3):
                    foot = [(0.78 * s, eye - 0.02 + 0.03 * k), (0.89 * s, eye - 0.08 + 0.08 * k)]
                    canvas.curve(face.to_pixels(foot), 0.016 * w, line)
        for k in range(3 if look.age >= 60 else 1 if look.age >= 45 else 0):
            y = -0.62 - 0.13 * k
            brow = [(-0.42, y + 0.02), (-0.15, y - 0.01), (0.15, y + 0.01), (0.42, y + 0.01)]
            canvas.curve(face.to_pixels(brow), 0.018 * w, line)


def _paint_beard(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint a full beard, a goatee or a moustache, by the subject."""
    face, look = figure.face, figure.look
    mx, mouth = face.to_local(figure.mouth_midpoint)
    _, nose = face.to_local(figure.joints["nose"])
    w, h, chin, j = face.half_width, face.half_height, look.chin, look.jaw
    hair = Paint(look.hair, grain=0.16, grain_px=max(1.0, 0.035 * w))
    beard_type = 0 if look.beard < 0.5 else 1 if look.beard < 0.8 else 2
    top = nose + 0.185
    side_outline = [
        (0.16, top - 0.005),
        (0.40, mouth + 0.03),
        (0.36, mouth + 0.07),
        (0.14, mouth - 0.035),
    ]
    whiskers = build_symmetric_outline((0.0, top), side_outline, (0.0, mouth - 0.04))
    moustache = [(mx + dx, y) for dx, y in whiskers]
    with canvas.as_part(figure.owner, "facial_hair"):
        if beard_type == 0:
            half = [(1.005, -0.05), (1.0, 0.22), (0.95 * j + 0.04, 0.55), (0.74 * j, 0.86)]
            half.append((0.4 * j, 1.06 * chin))
            cheek = [(0.28, mouth - 0.1), (0.58, mouth - 0.14), (0.86, 0.2)]
            lower_outline = [*half, (0.0, 1.13 * chin), *_mirror_points_horizontally(half)]
            outline = [
                *lower_outline,
                *_mirror_points_horizontally(cheek),
                (0.0, mouth - 0.08),
                *cheek,
            ]
            canvas.blob(face.to_pixels(outline), hair, steps=4)
        elif beard_type == 1:
            left = [(-0.3, mouth + 0.06), (-0.27, mouth + 0.25), (-0.2, chin)]
            goatee = [
                *left,
                (0.0, chin * 1.07),
                *_mirror_points_horizontally(left),
                (0.0, mouth + 0.12),
            ]
            patch = [(mx + dx, y) for dx, y in goatee]
            canvas.blob(face.to_pixels(patch), hair, steps=4)
        canvas.blob(face.to_pixels(moustache), hair, steps=3)
    gleam = Paint(lighten(look.hair, 0.35), alpha=0.25, soft=0.2 * w)
    with canvas.only_on(figure.owner, "facial_hair"):
        canvas.ellipse(face.to_pixel(mx, mouth + 0.3), 0.3 * w, 0.08 * h, gleam)


def _mirror_points_horizontally(points: list[Point]) -> list[Point]:
    return [(-x, y) for x, y in reversed(points)]
