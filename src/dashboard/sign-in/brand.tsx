import { Icon } from "../shared/button.tsx";

export function Brand() {
  return (
    <div class="brand">
      <span class="brand-sign">
        <Icon name="batches" />
      </span>
      Model Optimization
    </div>
  );
}
