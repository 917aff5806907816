import type { Scale } from "./scale";
import { unitOf } from "../words";

function tickText(value: number, unit: string): string {
  const shown = Number((unit === "fraction" ? 100 * value : value).toPrecision(6));
  return String(shown).replace("-", "\u2212");
}

/** The numbers below or above a drawing, each at its place; the unit stands at the last one. */
export function Axis({ scale, unit }: { scale: Scale; unit: string }) {
  return (
    <div class="axis" aria-hidden="true">
      {scale.ticks.map((tick, i) => (
        <span class={scale.at(tick) > 90 ? "end" : ""} style={{ left: `${scale.at(tick)}%` }} key={tick}>
          {tickText(tick, unit)}
          {i === scale.ticks.length - 1 && unit ? <i> {unitOf(unit)}</i> : null}
        </span>
      ))}
    </div>
  );
}
