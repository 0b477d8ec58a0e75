/** What GitHub takes at most. */
export const githubLimits = {
  jobSummaryBytes: 1_048_576,
  /** Of the summary and the text of a check run each. */
  checkFieldBytes: 65_535,
  checkTitleBytes: 255,
  commentBytes: 65_536,
  /** Annotations of one request. */
  annotations: 50,
  annotationTitleBytes: 255,
  annotationMessageBytes: 64_000,
} as const;
