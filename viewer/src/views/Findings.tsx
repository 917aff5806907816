import { useMemo } from "preact/hooks";
import type { Book } from "../data/book";
import { lineKey } from "../data/manifest";
import type { Finding } from "../data/tables";
import { Choose, Search } from "../parts/Field";
import { matcher } from "../select";
import { hashOf, type Store } from "../state";
import { count, pText, plural, titled } from "../words";

/** Where a finding is shown: its metric, its attribute, its group. */
function link(book: Book, finding: Finding, state: Store["state"]): string | null {
  const model = book.said.models.findIndex((one) => one.run === finding.run);
  const line = book.said.lines.findIndex((one) => one.metric === finding.metric && (finding.label === null || one.label === finding.label));
  const attribute = book.said.attributes.find((one) => one.name === finding.attribute);
  if (model < 0 || !attribute) return null;
  const of = line < 0 ? [] : book.of(model, line, book.said.attributes.indexOf(attribute));
  const known = of.some((one) => one.group === finding.group_a);
  return hashOf({
    ...state, view: "groups", model: book.said.models[model]!.name, metric: line < 0 ? "" : lineKey(book.said.lines[line]!), by: attribute.name,
    q: "", show: "all", sort: "value", group: known ? finding.group_a! : "", of: known ? attribute.name : "",
  });
}

export function Findings({ book, state, set }: { book: Book } & Store) {
  const attributes = [...new Set(book.findings.map((one) => one.attribute).filter((one) => one !== null))];
  const found = useMemo(() => {
    const fits = matcher(state.q);
    return book.findings.filter((one) => fits(one.claim) && (!state.by || one.attribute === state.by));
  }, [book, state.q, state.by]);
  const title = (name: string) => book.said.attributes.find((one) => one.name === name)?.title ?? titled(name);
  return (
    <>
      <div class="toolbar" role="search" aria-label="Choose and filter">
        <Choose label="About" value={state.by} onChange={(by) => set({ by })} choices={[{ value: "", text: "every attribute" }, ...attributes.map((name) => ({ value: name, text: title(name) }))]} />
        <Search label="Search findings" value={state.q} onInput={(q) => set({ q })} />
      </div>
      <p class="counted" role="status" aria-live="polite">{found.length === book.findings.length ? plural(found.length, "finding", "findings") : `${count(found.length)} of ${count(book.findings.length)} findings`}, in the order in which to read them</p>
      <ol class="findings">
        {found.map((finding) => {
          const to = link(book, finding, state);
          const run = book.said.runs[finding.run]!;
          return (
            <li key={`${finding.run} ${finding.rank}`} value={finding.rank}>
              <p>{finding.claim}</p>
              <p class="note">
                {book.said.runs.length > 1 ? `${run.title} · ` : ""}{titled(finding.analysis)}
                {finding.p_adjusted === null ? "" : ` · ${run.adjusted} p ${pText(finding.p_adjusted)}`}
                {finding.status === "ok" ? "" : ` · ${finding.status}`}
                {to ? <> · <a href={to} aria-label={`show these groups (of finding ${finding.rank})`}>show these groups</a></> : null}
              </p>
            </li>
          );
        })}
      </ol>
      {found.length ? null : <p class="none">{book.findings.length ? "No finding fits." : "This run has no findings."}</p>}
    </>
  );
}
