import { render } from "preact";
import { App } from "./App";
import { read } from "./data/book";
import "./style.css";

const home = document.getElementById("app")!;

read().then(
  (book) => {
    document.title = book.said.runs.map((run) => run.title).join(" · ");
    home.replaceChildren();
    render(<App book={book} />, home);
  },
  (error: unknown) => {
    const told = document.createElement("p");
    told.className = "waiting";
    told.setAttribute("role", "alert");
    told.textContent = `This page cannot be read. ${error instanceof Error ? error.message : String(error)}`;
    home.replaceChildren(told);
  },
);
