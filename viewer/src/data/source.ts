// Where the page's words and tables come from: the file itself, or the local server that serves it.
import { parquetRead } from "hyparquet";
import type { Manifest } from "./manifest";

export type Columns = Record<string, unknown[]>;

const FORMAT = 1;

export function manifest(): Manifest {
  const text = document.getElementById("manifest")?.textContent;
  if (!text) throw new Error("This file holds no run. `isolux view RUN --bundle FILE` makes one.");
  const found = JSON.parse(text) as Manifest;
  if (found.format !== FORMAT) {
    throw new Error(`This file is of format ${found.format}, and the page reads format ${FORMAT}.`);
  }
  return found;
}

/** Read a table; one that the file does not hold is null. */
export async function table(name: string): Promise<Columns | null> {
  const text = document.getElementById(`table-${name}`)?.textContent;
  if (text) return columns(await unpacked(bytes(text)));
  if (!manifest().holds.served) return null;
  const answer = await fetch(address("table", { name }));
  if (!answer.ok) throw new Error(await answer.text());
  return columns(await unpacked(new Uint8Array(await answer.arrayBuffer())));
}

/** An address of the local server, with the token that this page was opened with. */
export function address(what: string, said: Record<string, string>): string {
  const token = new URLSearchParams(location.search).get("token") ?? "";
  return `/${what}?${new URLSearchParams({ ...said, token }).toString()}`;
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64);
  const found = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) found[i] = binary.charCodeAt(i);
  return found;
}

async function unpacked(packed: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser is too old for this page: any of 2023 or later can read it.");
  }
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function columns(file: ArrayBuffer): Promise<Columns> {
  const found: Columns = {};
  await parquetRead({
    file,
    onChunk: ({ columnName, columnData }) => {
      const column = (found[columnName] ??= []);
      for (let i = 0; i < columnData.length; i++) column.push(columnData[i]);
    },
  });
  return found;
}
