/** In a card whose content is being loaded. */
export function Loading() {
  return (
    <p class="card-text dim padded" role="status">
      Loading…
    </p>
  );
}
