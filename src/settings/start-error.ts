/** Why a process cannot start. The message is complete without a stack. */
export class StartError extends Error {
  override readonly name = "StartError";
}
