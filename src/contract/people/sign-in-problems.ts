/** Why a single sign-on signed nobody in, as the sign-in page says it. */
export const signInProblems = {
  expired: "This sign-in took too long, or began in another browser. Try again.",
  refused: "The single sign-on did not confirm who you are. Try again.",
  unavailable: "The single sign-on cannot be reached, or answers wrongly. Try again later.",
  busy: "Too many people sign in at the moment. Try again in a minute.",
} as const;
export type SignInProblem = keyof typeof signInProblems;
