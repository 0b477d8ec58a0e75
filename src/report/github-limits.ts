/** Limits of GitHub. */
export const githubLimits = {
  jobSummaryBytes: 1_048_576,
  /** For the summary and the text of a check run each. */
  checkFieldBytes: 65_535,
  checkTitleBytes: 255,
  commentBytes: 65_536,
  /** Per request. */
  annotations: 50,
  annotationTitleBytes: 255,
  annotationMessageBytes: 64_000,
} as const;
