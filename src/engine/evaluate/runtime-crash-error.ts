/** The runtime's process ended while it loaded or ran a model, whatever it was given. */
export class RuntimeCrashError extends Error {}
