/** Lanes of a work queue: urgent keys come first, those of the periodic resync last. */
export const lanes = ["urgent", "normal", "resync"] as const;

export type Lane = (typeof lanes)[number];

export function moreUrgentLane(lane: Lane, other: Lane | undefined): Lane {
  return other !== undefined && lanes.indexOf(other) < lanes.indexOf(lane) ? other : lane;
}
