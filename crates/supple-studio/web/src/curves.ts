// Curves over the steps of a take, with a mark at the present step.

import type { Curve } from "./protocol";

/** Told apart by colour-blind eyes by their lightness too. */
export const CURVE_COLOURS = ["#2f6fc4", "#d9722e", "#2e9e5b", "#a45fd0", "#8a7a2a"];

/** Draws curves from zero up to the largest of all values, which is written beside the top. `mark` is a column. */
export function drawCurves(canvas: HTMLCanvasElement, curves: Curve[], mark: number | null, told: (x: number) => string): void {
  const { clientWidth: width, clientHeight: height } = canvas;
  if (width === 0) return;
  const ratio = Math.min(devicePixelRatio, 2);
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  const pen = canvas.getContext("2d")!;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const largest = Math.max(...curves.map((curve) => curve.largest), 0);
  const columns = Math.max((curves[0]?.values.length ?? 0) - 1, 1);
  const x = (column: number) => (width * column) / columns;
  const y = (value: number) => (height - 2) * (1 - value / (largest || 1)) + 1;
  if (mark !== null) {
    pen.strokeStyle = "#88888899";
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x(mark), 0);
    pen.lineTo(x(mark), height);
    pen.stroke();
  }
  // The largest joint lies on top.
  for (let k = curves.length - 1; k >= 0; k--) {
    pen.strokeStyle = CURVE_COLOURS[k % CURVE_COLOURS.length]!;
    pen.lineWidth = 1.5;
    pen.beginPath();
    curves[k]!.values.forEach((value, column) => pen.lineTo(x(column), y(value)));
    pen.stroke();
  }
  if (curves.length === 0) return;
  pen.fillStyle = getComputedStyle(canvas).color;
  pen.font = "11px system-ui, sans-serif";
  pen.fillText(told(largest), 4, 12);
}
