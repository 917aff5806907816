import type { Bins } from "../data/manifest";
import { count, plural, unitOf } from "../words";

function shares(counts: number[]): number[] {
  const total = counts.reduce((sum, n) => sum + n, 0);
  return counts.map((n) => (total ? n / total : 0));
}

/** Bars of a row: a group's scores in bins; the outline behind them is everyone's. */
export function Spark({ counts, everyone }: { counts: number[]; everyone: number[] | null }) {
  const own = shares(counts);
  const all = everyone ? shares(everyone) : [];
  const most = Math.max(...own, ...all, 1e-9);
  const wide = 100 / own.length;
  return (
    <svg class="spark" aria-hidden="true" focusable="false" viewBox="0 0 100 30" preserveAspectRatio="none">
      {all.map((share, i) => (
        <rect class="behind" key={`e${i}`} x={i * wide} width={wide} y={30 - (28 * share) / most} height={(28 * share) / most} />
      ))}
      {own.map((share, i) => (
        <rect key={i} x={i * wide + wide * 0.12} width={wide * 0.76} y={30 - (28 * share) / most} height={(28 * share) / most} />
      ))}
    </svg>
  );
}

function edge(bins: Bins, i: number, unit: string): string {
  const value = bins.low + ((bins.high - bins.low) * i) / bins.n;
  return String(Number((unit === "fraction" ? 100 * value : value).toPrecision(4)));
}

/** How people's scores are spread: share of the group in each bin, everyone's outlined behind. */
export function Histogram(props: { counts: number[]; everyone: number[] | null; bins: Bins; unit: string; name: string; unscored: number }) {
  const { counts, everyone, bins, unit, name } = props;
  const own = shares(counts);
  const all = everyone ? shares(everyone) : [];
  const most = Math.max(...own, ...all, 1e-9);
  const top = Math.ceil(most * 10) / 10;
  const total = counts.reduce((sum, n) => sum + n, 0);
  const wide = 100 / own.length;
  const labels = bins.two ? ["0", "1"] : null;
  const said = bins.two
    ? `${count(counts[1] ?? 0)} scored 1, ${count(counts[0] ?? 0)} scored 0.`
    : `Bars: share of units in each of ${bins.n} bins.`;
  return (
    <figure class="histogram">
      <div class="plot" role="img" aria-label={`Scores of ${plural(total, "unit", "units")} in ${name}. ${said}`}>
        <span class="ytop">{Math.round(100 * top)} %</span>
        <span class="yzero">0 %</span>
        <svg viewBox="0 0 100 60" preserveAspectRatio="none" focusable="false">
          {own.map((share, i) => (
            <rect key={i} x={i * wide + wide * 0.1} width={wide * 0.8} y={60 - (60 * share) / top} height={(60 * share) / top} />
          ))}
          {all.map((share, i) => (
            <path class="outline" key={`e${i}`} d={`M${i * wide} ${60 - (60 * share) / top}h${wide}`} />
          ))}
        </svg>
        <div class="xs" aria-hidden="true">
          {labels
            ? labels.map((label, i) => <span style={{ left: `${(i + 0.5) * wide}%` }}>{label}</span>)
            : [0, bins.n / 2, bins.n].map((i) => <span style={{ left: `${(100 * i) / bins.n}%` }}>{edge(bins, i, unit)}</span>)}
        </div>
      </div>
      <figcaption>
        Across: a unit’s score{!bins.two && unit ? ` (${unitOf(unit)})` : ""}. Up: share of the group.{everyone ? " Lines: everyone." : ""}
        {props.unscored ? ` ${plural(props.unscored, "unit has", "units have")} no score.` : ""} Counts, not estimates.
      </figcaption>
    </figure>
  );
}
