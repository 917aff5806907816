// A table whose rows are drawn only where they are seen: a thousand cost no more than twenty.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Column<Row> {
  key: string;
  title: ComponentChildren;
  sorts?: boolean;
  class?: string;
  cell: (row: Row) => ComponentChildren;
}

interface Props<Row> {
  label: string;
  class: string;
  columns: Column<Row>[];
  rows: Row[];
  pinned?: Row[];
  id: (row: Row) => string;
  name: (row: Row) => string;
  under?: (row: Row) => string;
  height: number;
  sort: string;
  onSort: (sort: string) => void;
  open: string | null;
  onOpen: ((row: Row) => void) | null;
}

const BEYOND = 6; // rows drawn above and below what is seen

export function Rows<Row>(props: Props<Row>) {
  const { rows, height, columns } = props;
  const body = useRef<HTMLDivElement>(null);
  const pending = useRef<number | null>(null);
  const [range, setRange] = useState<[number, number]>([0, 40]);
  const [active, setActive] = useState(0);

  const measure = () => {
    const top = body.current?.getBoundingClientRect().top ?? 0;
    // A few are always drawn, also of a table that begins below the window: Tab must reach them.
    const first = Math.max(0, Math.min(Math.floor(-top / height) - BEYOND, rows.length - BEYOND));
    const last = Math.max(BEYOND, Math.ceil((window.innerHeight - top) / height) + BEYOND);
    setRange((old) => (old[0] === first && old[1] === last ? old : [first, last]));
  };
  useEffect(() => {
    window.addEventListener("scroll", measure, { passive: true });
    window.addEventListener("resize", measure);
    const above = new ResizeObserver(measure); // what stands above the table may grow or shrink
    above.observe(document.body);
    return () => {
      above.disconnect();
      window.removeEventListener("scroll", measure);
      window.removeEventListener("resize", measure);
    };
  }, [height]);
  useLayoutEffect(measure, [height, rows.length]);
  useLayoutEffect(() => {
    if (pending.current === null) return;
    const found = body.current?.querySelector<HTMLElement>(`[data-at="${pending.current}"]`);
    if (found) {
      pending.current = null;
      found.focus({ preventScroll: true });
    }
  });

  const [first, last] = [Math.min(range[0], rows.length), Math.min(range[1], rows.length)];
  const stop = active >= first && active < last ? active : first;

  const go = (to: number) => {
    const at = Math.max(0, Math.min(rows.length - 1, to));
    setActive(at);
    pending.current = at;
    const top = (body.current?.getBoundingClientRect().top ?? 0) + at * height;
    if (top < 2 * height) window.scrollBy(0, top - 2 * height);
    else if (top + height > window.innerHeight) window.scrollBy(0, top + height - window.innerHeight);
    measure();
  };
  const keys = (event: KeyboardEvent) => {
    const at = Number((event.target as HTMLElement).dataset["at"] ?? NaN);
    if (Number.isNaN(at)) return;
    const page = Math.max(1, Math.floor(window.innerHeight / height) - 3);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go(to);
  };

  const line = (row: Row, at: number | null) => {
    const id = props.id(row);
    const place = at === null ? {} : { position: "absolute", top: `${at * height}px` };
    const index = (at === null ? 2 : at + 2 + (props.pinned?.length ?? 0));
    return (
      <div
        role="row" aria-rowindex={index} key={at === null ? `pinned ${id}` : id}
        class={`row${at === null ? " pinned" : ""}${props.open === id ? " open" : ""}`}
        style={{ ...place, height: `${height}px` }}
        onClick={(event) => {
          if (!props.onOpen || (event.target as HTMLElement).closest("button, a") || String(getSelection())) return;
          props.onOpen(row);
        }}
      >
        {columns.map((column, i) => (
          <div role={i === 0 ? "rowheader" : "cell"} class={`cell ${column.key} ${column.class ?? ""}`} key={column.key}>
            {i > 0 ? column.cell(row) : (
              <>
                {props.onOpen && at !== null ? (
                  <button
                    type="button" class="name" data-at={at} tabIndex={at === stop ? 0 : -1} title={props.name(row)}
                    aria-expanded={props.open === id}
                    onFocus={() => setActive(at)} onClick={() => props.onOpen?.(row)}
                  >
                    <bdi>{props.name(row)}</bdi>
                  </button>
                ) : <bdi class="name" title={props.name(row)}>{props.name(row)}</bdi>}
                {props.under?.(row) ? <small><bdi>{props.under(row)}</bdi></small> : null}
              </>
            )}
          </div>
        ))}
      </div>
    );
  };

  return (
    <div class={`table ${props.class}`} role="table" aria-label={props.label} aria-rowcount={rows.length + 1 + (props.pinned?.length ?? 0)}>
      <div role="rowgroup" class="head">
        <div role="row" class="row" aria-rowindex={1}>
          {columns.map((column) => {
            const falling = props.sort === `-${column.key}`;
            const on = falling || props.sort === column.key;
            const order = on ? (falling ? "descending" : "ascending") : "none";
            return (
              <div role="columnheader" class={`cell ${column.key} ${column.class ?? ""}`} key={column.key} {...(column.sorts ? { "aria-sort": order as "none" } : {})}>
                {column.sorts ? (
                  <button type="button" onClick={() => props.onSort(on && !falling ? `-${column.key}` : column.key)}>
                    {column.title}
                    <span class="arrow" aria-hidden="true">{on ? (falling ? "↓" : "↑") : "↕"}</span>
                  </button>
                ) : column.title}
              </div>
            );
          })}
        </div>
      </div>
      {props.pinned?.length ? <div role="rowgroup">{props.pinned.map((row) => line(row, null))}</div> : null}
      <div role="rowgroup" class="body" ref={body} onKeyDown={keys} style={{ height: `${rows.length * height}px` }}>
        {rows.slice(first, last).map((row, i) => line(row, first + i))}
      </div>
    </div>
  );
}
