// Builds src/isolux/viewer/page.html: one file, its script and style inlined, nothing else beside it.
import { defineConfig } from "vite";

function oneFile() {
  return {
    name: "isolux-one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const files = Object.values(bundle);
      const script = files.find((file) => file.type === "chunk").code.trim();
      const style = files.find((file) => file.fileName.endsWith(".css")).source.trim();
      const html = String(files.find((file) => file.fileName.endsWith(".html")).source);
      for (const file of files) delete bundle[file.fileName];
      if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) {
        throw new Error("the script or style holds a tag that would end it inside the page");
      }
      const source = html
        .replace(/\s*<script type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, () => `\n<style>${style}</style>`)
        .replace("<!--isolux:script-->", () => `<script type="module">${script}</script>`);
      this.emitFile({ type: "asset", fileName: "page.html", source });
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [oneFile()],
  build: {
    outDir: "../src/isolux/viewer",
    emptyOutDir: false,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    assetsInlineLimit: 0,
  },
});
