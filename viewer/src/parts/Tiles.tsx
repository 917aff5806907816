// Thumbnails of people from the local server, in the order of the list: a page of them at a time.
import { useState } from "preact/hooks";
import { address } from "../data/source";
import { count } from "../words";

const PER_PAGE = 60;

interface Props {
  run: number;
  rows: number[];
  id: (row: number) => string;
  caption: (row: number) => string;
  open: string | null;
  onOpen: (row: number) => void;
}

export function Tiles({ run, rows, id, caption, open, onOpen }: Props) {
  const [pages, setPages] = useState(1);
  const shown = rows.slice(0, pages * PER_PAGE);
  return (
    <>
      <ul class="tiles" aria-label="Pictures of people who fit">
        {shown.map((row, at) => <Tile key={id(row)} run={run} id={id(row)} at={at} caption={caption(row)} open={open === id(row)} onOpen={() => onOpen(row)} />)}
      </ul>
      {rows.length > shown.length ? <button type="button" onClick={() => setPages(pages + 1)}>Show more of {count(rows.length)}</button> : null}
    </>
  );
}

function Tile(props: { run: number; id: string; at: number; caption: string; open: boolean; onOpen: () => void }) {
  const [absent, setAbsent] = useState(false);
  return (
    <li>
      <button type="button" data-at={props.at} aria-expanded={props.open} aria-label={`${props.id}, ${props.caption}`} title={props.id} onClick={props.onOpen}>
        {absent ? <span class="absent">no picture</span> : <img loading="lazy" alt="" src={address("thumbnail", { run: String(props.run), id: props.id })} onError={() => setAbsent(true)} />}
        <span>{props.caption}</span>
      </button>
    </li>
  );
}
