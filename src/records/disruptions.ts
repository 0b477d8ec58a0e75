/** What ends a local worker that is not its job's fault, as the job's log says it. */
export const disruptions = {
  service_killed: "The service died while the worker ran",
  service_stopped: "The service was stopped while the worker ran",
} as const;

export type Disruption = keyof typeof disruptions;
