// Live plots: the last seconds of a figure.

const LENGTH = 600;

export interface Curve {
  colour: string;
  values: Float64Array;
}

export class Plot {
  private readonly curves: Curve[];
  private filled = 0;
  private next = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    colours: string[],
    private readonly scale: "linear" | "logarithmic",
  ) {
    this.curves = colours.map((colour) => ({ colour, values: new Float64Array(LENGTH) }));
  }

  clear(): void {
    this.filled = this.next = 0;
  }

  add(...values: number[]): void {
    this.curves.forEach((curve, k) => (curve.values[this.next] = values[k] ?? 0));
    this.next = (this.next + 1) % LENGTH;
    this.filled = Math.min(this.filled + 1, LENGTH);
  }

  draw(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0) return;
    const ratio = Math.min(devicePixelRatio, 2);
    if (this.canvas.width !== Math.round(width * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const pen = this.canvas.getContext("2d")!;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const shown = (x: number) => (this.scale === "linear" ? x : Math.log10(Math.max(x, 1e-12)));
    const first = (this.next - this.filled + LENGTH) % LENGTH;
    let [low, high] = [Infinity, -Infinity];
    for (const { values } of this.curves) {
      for (let k = 0; k < this.filled; k++) {
        const y = shown(values[(first + k) % LENGTH]!);
        if (!Number.isFinite(y)) continue;
        if (y < low) low = y;
        if (y > high) high = y;
      }
    }
    if (!(high >= low)) return;
    const pad = Math.max(0.08 * (high - low), this.scale === "linear" ? 1e-3 * Math.max(Math.abs(high), 1e-9) : 0.2);
    low -= pad;
    high += pad;
    for (const { colour, values } of this.curves) {
      pen.strokeStyle = colour;
      pen.lineWidth = 1.5;
      pen.beginPath();
      for (let k = 0; k < this.filled; k++) {
        const y = shown(values[(first + k) % LENGTH]!);
        pen.lineTo((width * (k + LENGTH - this.filled)) / (LENGTH - 1), height * (1 - (y - low) / (high - low)));
      }
      pen.stroke();
    }
  }
}

/** A figure in at most four digits with its unit: 0.0000123 m is 12.3 µm. */
export function figure(value: number, unit: string): string {
  if (!Number.isFinite(value)) return `${value} ${unit}`;
  if (value === 0) return `0 ${unit}`;
  const steps: [number, string][] = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"], [1e-12, "p"]];
  const [factor, prefix] = steps.find(([f]) => Math.abs(value) >= f) ?? steps.at(-1)!;
  return `${Number((value / factor).toPrecision(3))} ${prefix}${unit}`;
}
