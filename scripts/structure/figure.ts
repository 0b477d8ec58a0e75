import type { Place } from "./source.ts";

/** A number that is the better the lower it is, and the places that make it. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly places: readonly Place[];
}

export function countFigure(name: string, places: readonly Place[]): Figure {
  return { name, value: places.length, places };
}

/** 5 of 1,000 lines are 0.5 per 100. */
export interface Scale {
  readonly per: number;
  readonly of: number;
}

export function shareFigure(name: string, places: readonly Place[], { per, of }: Scale): Figure {
  return { name, value: round((per * places.length) / Math.max(of, 1)), places };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
