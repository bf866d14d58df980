/** Whether the page is light or dark now. */

import { computed, signal } from "@preact/signals";
import { watchDark } from "#host";
import { theme } from "../state/preferences";
import type { Theme } from "./palette";

const isDark = signal(false);
watchDark((found) => {
  isDark.value = found;
});

export const presentTheme = computed<Theme>(() => {
  if (theme.value === "light" || theme.value === "dark") return theme.value;
  return isDark.value ? "dark" : "light";
});
