// Files dropped anywhere on the page.

export function acceptFiles(open: (file: File) => void, refuse: (words: string) => void): void {
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
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    if (/\.(take|glb|gltf)$/i.test(file.name)) open(file);
    else refuse(`${file.name} cannot be opened: drop a character (.glb, or .gltf with its data inside) or a .take file, which Save writes.`);
  });
}
