// Files that the person keeps. Takes count as saved when all their bytes are here, and the server is told so.

/** Fetches a file and hands it to the browser to keep. */
export async function keep(address: string, refuse: (words: string) => void): Promise<void> {
  let answer: Response;
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    answer = await fetch(address);
    if (!answer.ok) return refuse(await reasonOf(answer));
    bytes = new Uint8Array(await answer.arrayBuffer());
  } catch {
    return refuse("The file did not come whole, and nothing was saved: try again.");
  }
  const name = /filename="([^"]*)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1] ?? "";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type: answer.headers.get("content-type") ?? "" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  const id = answer.headers.get("x-take-id");
  if (id !== null) await tellSaved({ id: Number(id), bytes: bytes.length, hash: hash(bytes) }, refuse);
}

async function tellSaved(word: object, refuse: (words: string) => void): Promise<void> {
  try {
    const answer = await fetch("saved", { method: "POST", body: JSON.stringify(word) });
    if (!answer.ok) refuse(await reasonOf(answer));
  } catch {
    refuse("supple was not told that the takes are saved: it keeps them in its journal as well.");
  }
}

/** FNV-1a of 32 bits: what came is what was sent. */
function hash(bytes: Uint8Array): string {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}

/** Why a request was refused, in words. */
export async function reasonOf(answer: Response): Promise<string> {
  const text = await answer.text();
  try {
    return (JSON.parse(text) as { message: string }).message;
  } catch {
    return text; // not one of our refusals: shown as it is
  }
}
