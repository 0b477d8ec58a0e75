/**
 * A stopped worker in a pod delivers its last events for so long, and has the rest of the pod's
 * grace period to end.
 */
export const workerStop = { deliverySeconds: 25, graceSeconds: 30 } as const;
