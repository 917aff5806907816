import { STATUS_SHAPE, statusText } from "../words";

/** May a value be read as it stands: a mark, a word, and what it rests on. */
export function Status({ status, reason }: { status: string; reason: string | null }) {
  const said = statusText(status);
  return (
    <span class={`status ${status === "ok" ? "sound" : "unsound"}`} title={reason ? `${said}: ${reason}` : said}>
      <span aria-hidden="true">{STATUS_SHAPE[status] ?? ""}</span> {said}{reason ? " " : ""}
      {reason ? <small>{reason}</small> : null}
    </span>
  );
}
