/** A value of type `T` that is JSON text already. */
export class JsonText<T> {
  declare readonly type: T;
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}
