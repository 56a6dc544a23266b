// Files dropped anywhere on the page: one that is opened, and with a .gltf the files that it names.

const OPENED = /\.(take|glb|gltf|vrm|fbx|bvh|vrma)$/i;

/** What is dropped on the clips is a motion. */
export function acceptFiles(open: (file: File, as: "scene" | "motion") => void, refuse: (words: string) => void): void {
  const veil = document.getElementById("veil") as HTMLElement;
  const show = (on: boolean) => (veil.hidden = !on);
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    show(event.dataTransfer?.types.includes("Files") ?? false);
  });
  document.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) show(false);
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    show(false);
    const files = [...(event.dataTransfer?.files ?? [])];
    const as = event.target instanceof Element && event.target.closest("#clips") ? "motion" : "scene";
    chosen(files).then(
      (file) => file && open(file, as),
      (error: Error) => refuse(error.message),
    );
  });
}

/** The file to open of those that were dropped or chosen together; a .gltf with what it names put inside. */
export async function chosen(files: File[]): Promise<File | null> {
  if (files.length === 0) return null;
  const [file, ...others] = files.filter((file) => OPENED.test(file.name));
  if (!file) {
    throw new Error(
      `${files[0].name} cannot be opened: drop a character (.glb, .vrm, .fbx, or .gltf together with its files), a motion for the present one (.bvh, .vrma), or a .take file, which Save writes.`,
    );
  }
  if (others.length > 0) throw new Error(`${file.name} and ${others[0].name} were dropped together: drop one character or .take file at a time.`);
  return /\.gltf$/i.test(file.name) && files.length > 1 ? together(file, files) : file;
}

/** The .gltf with its buffers and images inside, as the server takes it: it opens nothing beside a file that was sent. */
async function together(file: File, files: File[]): Promise<File> {
  const root = JSON.parse(await file.text()) as { buffers?: { uri?: string }[]; images?: { uri?: string }[] };
  for (const part of [...(root.buffers ?? []), ...(root.images ?? [])]) {
    if (part.uri === undefined || part.uri.startsWith("data:")) continue;
    const name = decodeURIComponent(part.uri).split("/").at(-1);
    const found = files.find((other) => other.name === name);
    if (!found) throw new Error(`${file.name} names ${part.uri}, which was not dropped with it: drop all of its files together.`);
    part.uri = await dataOf(found);
  }
  return new File([JSON.stringify(root)], file.name);
}

function dataOf(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    const kind = /\.png$/i.test(file.name) ? "image/png" : /\.jpe?g$/i.test(file.name) ? "image/jpeg" : "application/octet-stream";
    reader.onload = () => resolve(`data:${kind};base64,${(reader.result as string).split(",")[1]}`);
    reader.onerror = () => reject(new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
}
