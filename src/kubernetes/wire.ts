/**
 * A type of the Kubernetes client as its JSON on the wire: dates are ISO strings, and names that the client escapes with
 * an underscore stand without it.
 */
export type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer Element)[]
    ? Wire<Element>[]
    : T extends object
      ? { [Key in keyof T as Key extends `_${infer Name}` ? Name : Key]: Wire<T[Key]> }
      : T;
