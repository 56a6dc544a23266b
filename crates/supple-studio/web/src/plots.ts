// Live plots: the last seconds of some figures.

/** Room at the right for the ends of the axis [px]. */
const GUTTER = 50;
/** Samples kept: five seconds at sixty a second. */
const LENGTH = 300;

/** Told apart by eyes with and without red-green blindness [Okabe and Ito 2008]. */
export const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];

export interface PlotLook {
  scale: "linear" | "logarithmic";
  /** Stacked: each curve stands on the one before, from zero. */
  stacked?: boolean;
  /** How a value is written at the ends of the axis. */
  write(value: number): string;
}

interface Curve {
  name: string;
  colour: string;
  values: Float64Array;
}

export class Plot {
  private curves: Curve[] = [];
  private filled = 0;
  private next = 0;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly look: PlotLook,
  ) {}

  /** What is plotted from now on; curves that go on keep what they have. */
  show(curves: { name: string; colour: string }[]): void {
    this.curves = curves.map(({ name, colour }) => {
      const values = this.curves.find((curve) => curve.name === name)?.values ?? new Float64Array(LENGTH).fill(NaN);
      return { name, colour, values };
    });
  }

  clear(): void {
    this.filled = this.next = 0;
    for (const { values } of this.curves) values.fill(NaN);
  }

  add(values: ArrayLike<number>): void {
    this.curves.forEach((curve, k) => (curve.values[this.next] = values[k] ?? NaN));
    this.next = (this.next + 1) % LENGTH;
    this.filled = Math.min(this.filled + 1, LENGTH);
  }

  draw(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0) return;
    const ratio = Math.min(devicePixelRatio, 2);
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const pen = this.canvas.getContext("2d")!;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const lines = this.heights();
    let [low, high] = this.look.stacked ? [0, -Infinity] : [Infinity, -Infinity];
    for (const line of lines) {
      for (const y of line) {
        if (y < low) low = y;
        if (y > high) high = y;
      }
    }
    if (!(high >= low)) return;
    if (this.look.stacked) high = Math.min(high, 1.5 * most(lines.at(-1)!));
    const ends = [low, high] as const;
    const least = this.look.scale === "linear" ? 1e-3 * Math.max(Math.abs(high), 1e-9) : 0.2;
    const pad = Math.max(0.1 * (high - low), least);
    if (!this.look.stacked) low -= pad;
    high += pad;
    const x = (k: number) => ((width - GUTTER) * (k + LENGTH - this.filled)) / (LENGTH - 1);
    const y = (value: number) => height * (1 - (value - low) / (high - low));
    if (low < 0 && high > 0 && this.look.scale === "linear") {
      pen.fillStyle = "#80808055";
      pen.fillRect(0, y(0), width - GUTTER, 1);
    }
    lines.forEach((line, c) => {
      const { colour } = this.curves[c]!;
      pen.beginPath();
      let pause = true;
      line.forEach((value, k) => {
        if (Number.isNaN(value)) pause = true;
        else if (pause) {
          pen.moveTo(x(k), y(value));
          pause = false;
        } else pen.lineTo(x(k), y(value));
      });
      if (this.look.stacked) {
        const under = lines[c - 1];
        for (let k = line.length - 1; k >= 0; k--) pen.lineTo(x(k), y(under?.[k] || 0));
        pen.fillStyle = colour;
        pen.fill();
      } else {
        pen.strokeStyle = colour;
        pen.lineWidth = 1.5;
        pen.stroke();
      }
    });
    this.writeEnds(pen, width, height, ends);
  }

  /** What each curve's points are drawn at, the oldest first. */
  private heights(): Float64Array[] {
    const first = (this.next - this.filled + LENGTH) % LENGTH;
    let under: Float64Array | null = null;
    return this.curves.map(({ values }) => {
      const line = new Float64Array(this.filled);
      for (let k = 0; k < this.filled; k++) {
        const value = values[(first + k) % LENGTH]!;
        const y = this.look.scale === "linear" ? value : Math.log10(Math.max(value, 1e-12));
        line[k] = (Number.isFinite(y) ? y : NaN) + (under?.[k] ?? 0);
      }
      if (this.look.stacked) under = line;
      return line;
    });
  }

  private writeEnds(pen: CanvasRenderingContext2D, width: number, height: number, [low, high]: readonly [number, number]): void {
    const written = (value: number) => this.look.write(this.look.scale === "linear" ? value : 10 ** value);
    const style = getComputedStyle(this.canvas);
    pen.font = `10px ${style.fontFamily}`;
    pen.textAlign = "left";
    pen.fillStyle = style.color;
    const [top, bottom] = [written(high), written(low)];
    for (const [text, at] of top === bottom ? [[top, 10] as const] : [[top, 10] as const, [bottom, height - 3] as const]) {
      pen.fillText(text, width - GUTTER + 5, at);
    }
  }
}

/** What nearly all values stay below: single spikes, of the machine rather than of the step, run out of the picture. */
function most(values: Float64Array): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort();
  return sorted[Math.floor(0.97 * (sorted.length - 1))] ?? 0;
}

/** A figure in a few digits with its unit: 0.0000123 m is 12.3 µm. What is below a millionth of a millionth is that. */
export function figure(value: number, unit: string, digits = 3): string {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return `${value} ${unit}`;
  if (value === 0) return `0 ${unit}`;
  if (Math.abs(value) < 1e-12) return `< 1 p${unit}`;
  const steps: [number, string][] = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"], [1e-12, "p"]];
  const [factor, prefix] = steps.find(([f]) => Math.abs(value) >= f) ?? steps.at(-1)!;
  return `${Number((value / factor).toPrecision(digits))} ${prefix}${unit}`;
}
