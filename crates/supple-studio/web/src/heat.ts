// Colours of a number on a logarithmic scale.

import { Color } from "three";

// Steps of cividis, made for eyes with and without red-green blindness.
const STEPS = [0x00224e, 0x35456c, 0x666970, 0x948e77, 0xc8b866, 0xfee838].map((c) => new Color(c));

export class Heat {
  constructor(
    /** What is coloured. */
    readonly name: string,
    /** Which of a joint's numbers; -1 for other numbers. */
    readonly number: number,
    readonly unit: string,
    readonly low: number,
    readonly high: number,
  ) {}

  /** The colour of a value, by its logarithm; what is not known looks like nothing. */
  colour(value: number, out: Color): Color {
    const share = value > this.low ? Math.min(Math.log(value / this.low) / Math.log(this.high / this.low), 1) : 0;
    const at = share * (STEPS.length - 1);
    const k = Math.min(Math.floor(at), STEPS.length - 2);
    return out.copy(STEPS[k]!).lerp(STEPS[k + 1]!, at - k);
  }

  /** Draws the scale from low to high. */
  drawScale(canvas: HTMLCanvasElement): void {
    const pen = canvas.getContext("2d")!;
    const colour = new Color();
    for (let x = 0; x < canvas.width; x++) {
      this.colour(this.low * (this.high / this.low) ** (x / (canvas.width - 1)), colour);
      pen.fillStyle = `#${colour.getHexString()}`;
      pen.fillRect(x, 0, 1, canvas.height);
    }
  }
}
