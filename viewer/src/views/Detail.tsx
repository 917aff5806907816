import { useEffect, useRef, useState } from "preact/hooks";
import { place, type Book } from "../data/book";
import { lineKey, type Line } from "../data/manifest";
import type { Group } from "../data/tables";
import { Histogram } from "../parts/Histogram";
import { Status } from "../parts/Status";
import { hashOf, type Store } from "../state";
import { brief, count, intervalText, pText, percent, plural, pointsText, valueText, withUnit } from "../words";

const FIRST = 12;

interface Other {
  other: string;
  value: number | null;
  low: number | null;
  high: number | null;
  p: number | null;
  detectable: number | null;
  status: string;
  reason: string | null;
}

function others(book: Book, group: Group): Other[] {
  const found: Other[] = [];
  for (const pair of book.pairs) {
    if (pair.model !== group.model || pair.line !== group.line || pair.attribute !== group.attribute) continue;
    if (pair.group_a === group.group) {
      found.push({ ...pair, other: pair.group_b, p: pair.p_adjusted });
    } else if (pair.group_b === group.group) {
      const turned = (value: number | null) => (value === null ? null : -value);
      found.push({ ...pair, other: pair.group_a, p: pair.p_adjusted, value: turned(pair.value), low: turned(pair.high), high: turned(pair.low) });
    }
  }
  return found.sort((a, b) => Math.abs(b.value ?? -1) - Math.abs(a.value ?? -1));
}

/** Why no spread is drawn. */
function noSpread(book: Book, said: Line): string {
  const holds = book.said.holds;
  if (!holds.whole) return "No spread: people withdrew after this audit. Audit again with --withdrawn to take them out of the values.";
  if (holds.publish_min) return "This page holds no scores of this group’s units.";
  if (!said.bins) return "In this metric single units have no score of their own, or the run keeps none: there is nothing to draw.";
  if (holds.fewest) return `No spread of groups of fewer than ${holds.fewest}, of groups whose value is withheld, or of one that would give those away.`;
  return "This page holds no scores of this group’s units.";
}

/** The choice of people that is this group. */
function picks(book: Book, group: Group): string {
  const said = new URLSearchParams();
  book.said.attributes[group.attribute]?.parts.forEach((part, i) => said.append(part, group.values[i] ?? ""));
  return said.toString();
}

/** All that is known of one group. */
export function Detail({ book, state, set, group, onClose }: { book: Book; group: Group; onClose: () => void } & Store) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { model, line, attribute } = group;
  const said = book.said.lines[line]!;
  const run = book.said.runs[book.said.models[model]!.run]!;
  const title = book.said.attributes[attribute]?.title ?? "";
  const [whole, setWhole] = useState(false);
  const key = `${attribute} ${group.group}`;
  useEffect(() => {
    setWhole(false);
    heading.current?.focus({ preventScroll: true });
  }, [key]);
  const spread = book.spread.get(place(model, line, attribute, group.group));
  const all = book.spread.get(place(model, line, -1, "overall"));
  const pairs = others(book, group);
  const metrics = book.linesOf(model).flatMap((i) => book.of(model, i, attribute).filter((one) => one.group === group.group));
  const escape = (event: KeyboardEvent) => {
    if (event.key === "Escape") onClose();
  };
  return (
    <section class="detail" aria-labelledby="detail-title" onKeyDown={escape}>
      <div class="bar">
        <h2 id="detail-title" tabIndex={-1} ref={heading}><bdi title={group.group}>{brief(group.group)}</bdi></h2>
        <button type="button" class="close" onClick={onClose}>Close</button>
      </div>
      <p class="note"><bdi>{title}</bdi> · {said.title}</p>
      <p class="huge">{withUnit(group.value, said.unit)}</p>
      <p>
        {group.low === null ? "No interval. " : `${percent(run.level)} interval ${intervalText(group.low, group.high, said.unit)}. `}
        {plural(group.n_units, "unit", "units")}{run.cluster ? ` in ${plural(group.n_clusters, "cluster", "clusters")}` : ""}.
      </p>
      <p><Status status={group.status} reason={group.reason} /></p>
      {group.difference === null ? null : (
        <p>
          Against everyone: <strong>{pointsText(group.difference, said.unit)}</strong> ({percent(run.level)} interval {intervalText(group.difference_low, group.difference_high, said.unit)}; {run.adjusted} p {pText(group.difference_p)}).
        </p>
      )}
      {group.shrunken === null ? null : (
        <p class="note">Estimate that borrows strength from groups that share some of its values: {withUnit(group.shrunken, said.unit)} ({intervalText(group.shrunken_low, group.shrunken_high, said.unit)}). No finding rests on it.</p>
      )}
      {book.said.holds.people && spread ? (
        <p><a href={hashOf({ ...state, view: "people", group: "", of: "", person: "", q: "", sort: "", pick: picks(book, group) })}>Its people, one by one</a></p>
      ) : null}
      <h3>How scores are spread</h3>
      {spread && said.bins ? (
        <Histogram counts={spread.counts} everyone={all?.counts ?? null} bins={said.bins} unit={said.unit} name={group.group} unscored={spread.unscored} />
      ) : (
        <p class="note">{noSpread(book, said)}</p>
      )}
      {pairs.length ? (
        <>
          <h3>Against other groups</h3>
          <div class="scroll" tabIndex={0} role="region" aria-label="Against other groups">
            <table>
              <thead><tr><th scope="col">{group.group.length > 24 ? "This group" : <bdi>{group.group}</bdi>} less</th><th scope="col" class="number">Difference{said.unit === "fraction" ? " (points)" : said.unit ? ` (${said.unit})` : ""}</th><th scope="col" class="number">{run.adjusted} p</th><th scope="col" class="number">Detectable</th></tr></thead>
              <tbody>
                {(whole ? pairs : pairs.slice(0, FIRST)).map((pair) => (
                  <tr key={pair.other}>
                    <th scope="row"><bdi>{pair.other}</bdi>{pair.reason ? <small>{pair.reason}</small> : null}</th>
                    <td class="number">{valueText(pair.value, said.unit, true)}<small>{pair.low === null ? "" : intervalText(pair.low, pair.high, said.unit)}</small></td>
                    <td class={`number${pair.p !== null && pair.p <= run.alpha ? " differs" : ""}`}>{pText(pair.p)}</td>
                    <td class="number">{valueText(pair.detectable, said.unit)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {pairs.length > FIRST && !whole ? <button type="button" onClick={() => setWhole(true)}>All {count(pairs.length)} groups</button> : null}
          <p class="note">Detectable: the smallest difference that this audit would likely have seen (four times in five).</p>
        </>
      ) : null}
      {metrics.length > 1 ? (
        <>
          <h3>In every metric</h3>
          <div class="scroll" tabIndex={0} role="region" aria-label="In every metric">
            <table>
              <thead><tr><th scope="col">Metric</th><th scope="col" class="number">Units</th><th scope="col" class="number">Value</th></tr></thead>
              <tbody>
                {metrics.map((one) => {
                  const own = book.said.lines[one.line]!;
                  return (
                    <tr key={one.line}>
                      <th scope="row">
                        {one.line === line ? own.title : <button type="button" class="link" onClick={() => set({ metric: lineKey(own) }, true)}>{own.title}</button>}
                      </th>
                      <td class="number">{count(one.n_units)}</td>
                      <td class="number">{withUnit(one.value, own.unit)}<small>{one.value === null ? (one.reason ?? one.status) : intervalText(one.low, one.high, own.unit)}</small></td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
        </>
      ) : null}
    </section>
  );
}
