/** Why a form could not be sent, read aloud at once; nothing without a reason. */
export function Problem({ text }: { text: string }) {
  return text ? (
    <p class="problem" role="alert">
      {text}
    </p>
  ) : null;
}
