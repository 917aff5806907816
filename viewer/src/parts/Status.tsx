import { statusShape } from "../words";

/** May a value be read as it stands: a mark, a word, and what it rests on. */
export function Status({ status, reason }: { status: string; reason: string | null }) {
  return (
    <span class={`status ${status === "ok" ? "sound" : "unsound"}`} title={reason ? `${status}: ${reason}` : status}>
      <span aria-hidden="true">{statusShape(status)}</span> {status}{reason ? " " : ""}
      {reason ? <small>{reason}</small> : null}
    </span>
  );
}
