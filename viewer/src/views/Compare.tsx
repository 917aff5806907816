import { useMemo } from "preact/hooks";
import { chosen, place, type Book } from "../data/book";
import { lineKey } from "../data/manifest";
import type { Change, Group, Move } from "../data/tables";
import { Axis } from "../parts/Axis";
import { Choose, Search } from "../parts/Field";
import { Interval } from "../parts/Interval";
import { Rows, type Column } from "../parts/Rows";
import { scaleOf, type Scale } from "../parts/scale";
import { matcher, sorted } from "../select";
import type { Store } from "../state";
import { count, gapUnitOf, intervalText, percent, plural, pText, unitOf, valueText } from "../words";
import { attributeChoices, useNarrow } from "./Groups";

interface Both {
  group: string;
  attribute: number;
  a: Group | null;
  b: Group | null;
  change: number | null;
  tested: Change | null;
  moved: Move | null;
}

/** Two models side by side, and who gained and lost. */
export function Compare({ book, state, set }: { book: Book } & Store) {
  const narrow = useNarrow();
  const { model: a, line, attribute } = chosen(book, state);
  const models = book.said.models;
  const other = models.findIndex((one) => one.name === state.versus);
  const b = other >= 0 && other !== a ? other : a === 0 ? 1 : 0;
  const lines = book.linesOf(a).filter((i) => book.linesOf(b).includes(i));
  const attributes = book.attributesOf(a, line).filter((i) => book.attributesOf(b, line).includes(i));
  const said = book.said.lines[line]!;
  const run = book.said.runs[models[a]!.run]!;
  const tests = useMemo(() => testsOf(book, a, b, line), [book, a, b, line]);
  const moves = useMemo(() => movesOf(book, a, b, line), [book, a, b, line]);
  const one = (attribute_: number): Both[] => {
    const second = new Map(book.of(b, line, attribute_).map((group) => [group.group, group]));
    const first = book.of(a, line, attribute_);
    const names = [...new Set([...first.map((group) => group.group), ...second.keys()])];
    const own = new Map(first.map((group) => [group.group, group]));
    return names.map((group) => pair(group, attribute_, own.get(group) ?? null, second.get(group) ?? null, tests, moves));
  };
  const everyone = one(-1)[0] ?? null;
  const every = useMemo(() => (attribute >= 0 ? [attribute] : attributes).flatMap(one), [book, a, b, line, attribute]);
  const rows = useMemo(() => {
    const fits = matcher(state.q);
    const kept = every.filter((row) => fits(`${row.group} ${book.said.attributes[row.attribute]?.title ?? ""}`));
    const key = {
      group: (row: Both) => row.group, first: (row: Both) => row.a?.value ?? null, second: (row: Both) => row.b?.value ?? null,
      change: (row: Both) => row.change, n: (row: Both) => row.a?.n_units ?? null, gained: (row: Both) => share(row.moved, said.direction),
      p: (row: Both) => row.tested?.p_adjusted ?? null,
    }[state.sort.replace(/^-/, "")];
    return key ? sorted(kept, key, state.sort.startsWith("-")) : kept;
  }, [every, state.q, state.sort]);
  const scale = useMemo(() => scaleOf(rows.flatMap((row) => [row.a, row.b]).flatMap((group) => (group ? [group.value, group.low, group.high] : [])), narrow ? 3 : 5, said.unit === "fraction" ? [-1, 1] : undefined), [rows, narrow]);
  const pickModel = (label: string, value: number, key: "model" | "versus") => (
    <Choose label={label} value={models[value]!.name} choices={models.map((m) => ({ value: m.name, text: m.name }))}
      onChange={(name) => set(key === "model" && name === models[b]!.name ? { model: name, versus: models[a]!.name } : { [key]: name })} />
  );
  const moved = everyone?.moved ?? null;
  return (
    <>
      <div class="toolbar" role="search" aria-label="Choose and filter">
        {pickModel("From", a, "model")}
        {pickModel("To", b, "versus")}
        <Choose label="Metric" value={lineKey(said)} choices={lines.map((i) => ({ value: lineKey(book.said.lines[i]!), text: book.said.lines[i]!.title }))} onChange={(metric) => set({ metric })} />
        <Choose label="Groups by" value={book.said.attributes[attribute]?.name ?? ""} choices={attributeChoices(book, attributes)} onChange={(by) => set({ by })} />
        <Search label="Search groups" value={state.q} onInput={(q) => set({ q })} />
      </div>
      <div class="lead">
        {moved ? <p><strong>{movedText(moved, said.direction)}</strong> of {count(moved.up + moved.down + moved.same)} units whom both scored{said.bins?.two ? "" : ", by any amount"}.</p> : <p>{book.said.holds.whole ? "These two models did not score the same units by id, or the page keeps no scores: who gained and who lost cannot be counted." : "People withdrew after these audits: who gained and who lost is not told. Audit again with --withdrawn."}</p>}
        {moved && book.said.holds.fewest ? <p class="note">No count of who gained and lost in groups of fewer than {book.said.holds.fewest} units, in groups whose value is withheld, or in one that would give those away.</p> : null}
        {tests.size ? null : <p class="note"><strong>Changes are descriptive here:</strong> one value less the other, not tested. <code>isolux compare</code> of the two runs tests them on the same people; its directory can be viewed too.{book.said.holds.untested ? <> Here it says: <bdi>{book.said.holds.untested}</bdi>.</> : null}</p>}
      </div>
      <p class="counted" role="status" aria-live="polite">{rows.length === every.length ? `${count(rows.length)} groups` : `${count(rows.length)} of ${count(every.length)} groups`}</p>
      {rows.length ? (
        <Rows
          label={`${said.title} of both models by group`} class="compare" rows={rows} pinned={everyone ? [everyone] : []}
          id={(row) => `${row.attribute}\u0000${row.group}`} name={(row) => (row.attribute < 0 ? "overall" : row.group)}
          under={(row) => (attribute < 0 && row.attribute >= 0 ? book.said.attributes[row.attribute]!.title : "")}
          height={narrow ? 118 : 52} columns={columns(book, a, b, said.title, said.unit, said.direction, scale, run.alpha, tests.size > 0)}
          sort={state.sort} onSort={(sort) => set({ sort })} open={null}
          onOpen={(row) => row.a ? set({ view: "groups", group: row.group, of: book.said.attributes[row.attribute]!.name, by: book.said.attributes[row.attribute]!.name }, true) : undefined}
        />
      ) : <p class="none">No group is called so.</p>}
      <p class="note legend">
        <svg class="sample" aria-hidden="true" focusable="false" viewBox="0 0 40 14"><line class="whisker" x1="4" x2="36" y1="7" y2="7" /><circle cx="20" cy="7" r="4.5" /></svg>
        <bdi>{models[a]!.name}</bdi>, with its {percent(run.level)} interval
        <svg class="sample second" aria-hidden="true" focusable="false" viewBox="0 0 40 14"><line class="whisker" x1="4" x2="36" y1="7" y2="7" /><circle cx="20" cy="7" r="4.5" /></svg>
        <bdi>{models[b]!.name}</bdi>
      </p>
    </>
  );
}

function pair(group: string, attribute: number, a: Group | null, b: Group | null, tests: Map<string, Change>, moves: Map<string, Move>): Both {
  const key = place(0, 0, attribute, group);
  const tested = tests.get(key) ?? null;
  const plain = a?.value != null && b?.value != null ? b.value - a.value : null;
  return { group, attribute, a, b, tested, change: tested ? tested.value : plain, moved: moves.get(key) ?? null };
}

/** Tested changes of these two models, turned where they stand the other way round. */
function testsOf(book: Book, a: number, b: number, line: number): Map<string, Change> {
  const found = new Map<string, Change>();
  const [first, second] = [book.said.models[a]!, book.said.models[b]!];
  const within = first.run === second.run;
  const run = book.said.runs[first.run]!;
  if (within && !run.comparison) return found;
  const turned = within ? run.models.indexOf(first.model) > run.models.indexOf(second.model) : first.run > second.run;
  const [from, to] = turned ? [second.run, first.run] : [first.run, second.run];
  const minus = (value: number | null) => (value === null ? null : -value);
  for (const one of book.changes) {
    if (one.run !== from || one.run_b !== to || one.line !== line) continue;
    const own = turned ? { ...one, value: minus(one.value), low: minus(one.high), high: minus(one.low) } : one;
    found.set(place(0, 0, one.attribute, one.group), own);
  }
  return found;
}

function movesOf(book: Book, a: number, b: number, line: number): Map<string, Move> {
  const found = new Map<string, Move>();
  for (const one of book.moves) {
    if (one.line !== line) continue;
    if (one.model_a === a && one.model_b === b) found.set(place(0, 0, one.attribute, one.group), one);
    if (one.model_a === b && one.model_b === a) found.set(place(0, 0, one.attribute, one.group), { ...one, up: one.down, down: one.up });
  }
  return found;
}

function gainedLost(moved: Move, direction: string): [number, number] {
  return direction === "lower" ? [moved.down, moved.up] : [moved.up, moved.down];
}

function movedText(moved: Move, direction: string): string {
  const [gained, lost] = gainedLost(moved, direction);
  if (direction === "none") return `${plural(gained, "score is", "scores are")} higher, ${count(lost)} lower`;
  return `${count(gained)} gained, ${count(lost)} lost`;
}

function share(moved: Move | null, direction: string): number | null {
  if (!moved) return null;
  const [gained, lost] = gainedLost(moved, direction);
  return (gained - lost) / Math.max(1, moved.up + moved.down + moved.same);
}

function columns(book: Book, a: number, b: number, title: string, unit: string, direction: string, scale: Scale, alpha: number, tested: boolean): Column<Both>[] {
  const shown = unit ? ` (${unitOf(unit)})` : "";
  const value = (group: Group | null) => (
    <>
      <span data-v={group?.value ?? ""}>{valueText(group?.value ?? null, unit)}</span>
      <small title={group?.reason ?? ""}>{group === null ? "not measured" : group.value === null ? group.status : intervalText(group.low, group.high, unit)}</small>
    </>
  );
  const sure = (row: Both) => row.tested?.p_adjusted != null && row.tested.p_adjusted <= alpha;
  const found: Column<Both>[] = [
    { key: "group", title: "Group", sorts: true, cell: () => null },
    { key: "n", title: "Units", sorts: true, class: "number", cell: (row) => count(row.a?.n_units ?? row.b?.n_units ?? null) },
    {
      key: "drawn", title: <><span class="unseen">{title}, drawn with intervals</span><Axis scale={scale} unit={unit} /></>,
      cell: (row) => <Interval scale={scale} everyone={null} marks={[row.a, row.b].map((group) => ({ value: group?.value ?? null, low: group?.low ?? null, high: group?.high ?? null, hollow: group?.status !== "ok" }))} />,
    },
    { key: "first", title: `${book.said.models[a]!.name}${shown}`, sorts: true, class: "number", cell: (row) => value(row.a) },
    { key: "second", title: `${book.said.models[b]!.name}${shown}`, sorts: true, class: "number", cell: (row) => value(row.b) },
    {
      key: "change", title: `Change${unit ? ` (${gapUnitOf(unit)})` : ""}`, sorts: true, class: "number",
      cell: (row) => (
        <>
          <span class={sure(row) ? "differs" : ""} data-v={row.change ?? ""}>{valueText(row.change, unit, true)}</span>
          <small>{row.tested ? intervalText(row.tested.low, row.tested.high, unit) : row.change === null ? "" : "not tested"}</small>
        </>
      ),
    },
  ];
  if (tested) found.push({ key: "p", title: "Adjusted p", sorts: true, class: "number", cell: (row) => <span class={sure(row) ? "differs" : ""}>{pText(row.tested?.p_adjusted ?? null)}</span> });
  found.push({
    key: "gained", title: direction === "none" ? "Higher, lower" : "Gained, lost", sorts: true,
    cell: (row) => row.moved ? <span data-v={share(row.moved, direction)!}>{movedText(row.moved, direction)}</span> : "–",
  });
  return found;
}
