/** The start of the app in a widget, and its end. */
import { render } from "preact";
import "./main";
import { onProblem } from "./host/notebook";
import { say } from "./state/notices";
import type { Surroundings } from "./widget/surroundings";
import { startTraits } from "./widget/traits";

declare const WIDGET: Surroundings;

onProblem.current = (sentence) => say(sentence, "error");
startTraits(WIDGET);
WIDGET.closing.addEventListener("abort", () => render(null, WIDGET.place));
