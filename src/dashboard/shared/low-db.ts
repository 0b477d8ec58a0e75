/** SQNRs of weights, dB, below which they are worth a look. */
export const lowDb = { bad: 20, warn: 28 } as const;
