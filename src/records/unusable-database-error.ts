/** Why the records cannot be opened, for people: the message needs no stack. */
export class UnusableDatabaseError extends Error {
  override readonly name = "UnusableDatabaseError";
}
