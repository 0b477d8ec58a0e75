/**
 * A type of the Kubernetes client in the form of its JSON: dates are ISO strings, and names that
 * the client escapes with an underscore lack it.
 */
export type Serialized<T> = T extends Date
  ? string
  : T extends readonly (infer Element)[]
    ? Serialized<Element>[]
    : T extends object
      ? { [Key in keyof T as Key extends `_${infer Name}` ? Name : Key]: Serialized<T[Key]> }
      : T;
