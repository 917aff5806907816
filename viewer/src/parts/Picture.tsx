// A person's photo from the local server, with what was annotated drawn over it (box, mask,
// keypoints), and the boxes that models drew themselves.
import { useEffect, useState } from "preact/hooks";
import { address } from "../data/source";
import { count, plural } from "../words";

type Box = [number, number, number, number];

interface Drawn {
  boxes: { model: string; label: string | null; score: number | null; box: Box }[];
  more: number; // boxes that are left out
  why: string; // why there are none to show
}

interface Around {
  width: number;
  height: number;
  box: Box | null; // pixels of the picture
  points: [number, number][];
  mask: boolean;
  blurred: boolean;
  drawn: Drawn | null; // null: these models draw no boxes
  why: string; // why there is no picture
}

export function Picture({ run, id }: { run: number; id: string }) {
  const [around, set] = useState<Around | null>(null);
  const [bare, setBare] = useState(false);
  const [own, setOwn] = useState(true);
  useEffect(() => {
    let live = true;
    set(null);
    fetch(address("person", { run: String(run), id }))
      .then(async (answer) => (answer.ok ? ((await answer.json()) as Around) : Promise.reject(new Error(await answer.text()))))
      .catch((error: unknown) => ({ width: 0, height: 0, box: null, points: [], mask: false, blurred: false, drawn: null, why: error instanceof Error ? error.message : String(error) }))
      .then((found) => live && set(found));
    return () => { live = false; };
  }, [run, id]);
  if (!around) return <p class="note">Opening the picture …</p>;
  if (around.why) return <p class="note">No picture: {around.why}</p>;
  const { width, height, box, points, drawn } = around;
  const dot = Math.max(width, height) / 110;
  return (
    <figure class="photo">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Picture of ${id}${around.blurred ? ", blurred" : ""}`}>
        <image href={address("picture", { run: String(run), id })} width={width} height={height} />
        {around.mask && !bare ? <image href={address("mask", { run: String(run), id })} width={width} height={height} /> : null}
        {box && !bare ? (
          <>
            <rect class="under" x={box[0]} y={box[1]} width={box[2]} height={box[3]} />
            <rect class="over" x={box[0]} y={box[1]} width={box[2]} height={box[3]} />
          </>
        ) : null}
        {bare ? null : points.map(([x, y], i) => <circle key={i} cx={x} cy={y} r={dot} />)}
        {drawn && own ? drawn.boxes.map(({ box: [x, y, w, h], ...one }, i) => (
          <g key={i} class="drawn">
            <title>{said(one)}</title>
            <rect class="under" x={x} y={y} width={w} height={h} />
            <rect class="over" x={x} y={y} width={w} height={h} />
          </g>
        )) : null}
      </svg>
      <figcaption>
        {box || around.mask || points.length ? (
          <label><input type="checkbox" checked={!bare} onChange={(event) => setBare(!event.currentTarget.checked)} /> what was annotated: {[box ? "box" : "", around.mask ? "mask" : "", points.length ? "keypoints" : ""].filter(Boolean).join(", ")}</label>
        ) : "Nothing was annotated in this picture."}
        {drawn ? <Own drawn={drawn} shown={own} onShow={setOwn} /> : null}
        {around.blurred ? " Blurred, as faces are: --show-faces shows the picture as it is." : ""}
      </figcaption>
    </figure>
  );
}

function said(one: { model: string; label: string | null; score: number | null }): string {
  const sure = one.score === null ? "" : `, score ${Number(one.score.toPrecision(3))}`;
  const label = one.label === null ? "a box" : /^\d+$/.test(one.label) ? `class ${one.label}` : one.label;
  return `${one.model}: ${label}${sure}`;
}

/** What models drew here: in words too, for who cannot see the lines. */
function Own({ drawn, shown, onShow }: { drawn: Drawn; shown: boolean; onShow: (shown: boolean) => void }) {
  if (drawn.why) return <p class="note">The boxes that the model drew are not shown: <bdi>{drawn.why}</bdi></p>;
  if (!drawn.boxes.length) return <p class="note">The model drew no box in this picture.</p>;
  const most = drawn.boxes.slice(0, 5);
  const rest = drawn.boxes.length - most.length + drawn.more;
  return (
    <>
      <label><input type="checkbox" checked={shown} onChange={(event) => onShow(event.currentTarget.checked)} /> what the model drew (dashed): {plural(drawn.boxes.length, "box", "boxes")}{drawn.more ? `, the surest of ${count(drawn.boxes.length + drawn.more)}` : ""}</label>
      <p class="note">{most.map((one, i) => <span key={i}>{i ? "; " : ""}<bdi>{said(one)}</bdi></span>)}{rest ? `; and ${count(rest)} more` : ""}.</p>
    </>
  );
}
