/** Points on a canvas by WebGL2. */
import { type Camera, diameter, type Size, side } from "./camera";

const STEPS_BYTES = 4;
/** Attributes of a point: its place, the code of its colour, and whether the filter keeps it. */
const [PLACE, CODE, KEPT] = [0, 1, 2];

const VERTEX = `#version 300 es
layout(location = 0) in vec2 place;
layout(location = 1) in float code;
layout(location = 2) in float kept;
uniform vec2 middle, scale;
uniform vec3 dimmed;
uniform float size, opacity;
uniform sampler2D colours;
out vec4 colour;
void main() {
  bool isKept = kept > 0.5;
  gl_Position = vec4((place - middle) * scale, isKept ? 0.0 : 0.5, 1.0);
  gl_PointSize = isKept ? size : max(1.0, size * 0.8);
  vec3 own = texelFetch(colours, ivec2(int(code + 0.5), 0), 0).rgb;
  float alpha = isKept ? opacity : opacity * 0.35;
  colour = vec4((isKept ? own : dimmed) * alpha, alpha);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
uniform float size;
in vec4 colour;
out vec4 drawn;
void main() {
  float share = size < 2.5 ? 1.0 : clamp((0.5 - length(gl_PointCoord - 0.5)) * size + 0.5, 0.0, 1.0);
  if (share < 0.05) discard;
  drawn = colour * share;
}`;

const UNIFORMS = ["middle", "scale", "dimmed", "size", "opacity", "colours"] as const;

/** The parts of a context that are lost with it. */
interface Parts {
  program: WebGLProgram;
  uniforms: Record<(typeof UNIFORMS)[number], WebGLUniformLocation | null>;
  places: WebGLBuffer;
  codes: WebGLBuffer;
  kept: WebGLBuffer;
}

/** Points on a canvas. What was passed is kept, so that it can be drawn again after the context was lost. */
export class PointsCanvas {
  private parts: Parts | null = null;
  private count = 0;
  private places: Uint16Array = new Uint16Array(0);
  private uploaded = 0;
  private codes: Uint8Array | null = null;
  private kept: Uint8Array | null = null;
  private table: Uint8Array = new Uint8Array(1024);
  private dimmed: readonly number[] = [0.5, 0.5, 0.5];

  private constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly gl: WebGL2RenderingContext,
  ) {
    this.restore();
  }

  /** Return the drawing on a canvas; null where there is no WebGL2. */
  static on(canvas: HTMLCanvasElement): PointsCanvas | null {
    const options = { antialias: false, depth: true, preserveDrawingBuffer: true, premultipliedAlpha: true };
    const gl = canvas.getContext("webgl2", options) as WebGL2RenderingContext | null;
    return gl && new PointsCanvas(canvas, gl);
  }

  /** Make the parts of the context, at first and after it was lost. */
  restore(): void {
    const { gl } = this;
    const program = gl.createProgram();
    if (!program) return;
    for (const [type, source] of [
      [gl.VERTEX_SHADER, VERTEX],
      [gl.FRAGMENT_SHADER, FRAGMENT],
    ] as const) {
      const shader = gl.createShader(type)!;
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    const uniforms = Object.fromEntries(
      UNIFORMS.map((name) => [name, gl.getUniformLocation(program, name)]),
    ) as Parts["uniforms"];
    this.parts = { program, uniforms, places: gl.createBuffer(), codes: gl.createBuffer(), kept: gl.createBuffer() };
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER])
      gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    // What the filter leaves out lies behind what it keeps, in whatever order they are drawn.
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    this.uploaded = 0;
    const { count, places } = this;
    this.setPoints(places, count);
    this.load(count);
    this.setCodes(this.codes);
    this.setKept(this.kept);
    this.setColours(this.table, this.dimmed);
  }

  /** Free the memory of the points; the drawing cannot be used any more. */
  release(): void {
    for (const name of ["places", "codes", "kept"] as const) this.gl.deleteBuffer(this.parts?.[name] ?? null);
    this.parts = null;
  }

  /** Take the places of all points, of which the first ones may have come. */
  setPoints(places: Uint16Array, count: number): void {
    [this.places, this.count, this.uploaded] = [places, count, 0];
    this.bind(PLACE, this.parts?.places);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, count * STEPS_BYTES, this.gl.STATIC_DRAW);
    this.gl.vertexAttribPointer(PLACE!, 2, this.gl.UNSIGNED_SHORT, true, 0, 0);
  }

  /** Pass on the places that have come. */
  load(loaded: number): void {
    if (loaded <= this.uploaded) return;
    this.bind(PLACE, this.parts?.places);
    const part = this.places.subarray(2 * this.uploaded, 2 * loaded);
    this.gl.bufferSubData(this.gl.ARRAY_BUFFER, this.uploaded * STEPS_BYTES, part);
    this.uploaded = loaded;
  }

  /** Take the code of each point's colour; null for no colours. */
  setCodes(codes: Uint8Array | null): void {
    this.codes = codes;
    this.setBytes(CODE!, this.parts?.codes, codes, 0);
  }

  /** Take which points the filter keeps: 1 for those; null for all. */
  setKept(kept: Uint8Array | null): void {
    this.kept = kept;
    this.setBytes(KEPT!, this.parts?.kept, kept, 1);
  }

  /** Take the colours by code, and that of points which the filter leaves out: red, green, blue to 1. */
  setColours(table: Uint8Array, dimmed: readonly number[]): void {
    [this.table, this.dimmed] = [table, dimmed];
    const { gl } = this;
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, table);
  }

  private bind(attribute: number | undefined, buffer: WebGLBuffer | undefined): void {
    if (buffer) this.gl.bindBuffer(this.gl.ARRAY_BUFFER, buffer);
    this.gl.enableVertexAttribArray(attribute!);
  }

  private setBytes(attribute: number, buffer: WebGLBuffer | undefined, values: Uint8Array | null, other: number): void {
    const { gl } = this;
    if (!values || values.length !== this.count || !buffer) {
      gl.disableVertexAttribArray(attribute);
      gl.vertexAttrib1f(attribute, other);
      return;
    }
    this.bind(attribute, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
    gl.vertexAttribPointer(attribute, 1, gl.UNSIGNED_BYTE, false, 0, 0);
  }

  /** Remove what is drawn, and point the camera. */
  clear(camera: Camera, size: Size): void {
    const { gl, parts, canvas } = this;
    if (!parts || gl.isContextLost()) return;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const ratio = canvas.width / Math.max(1, size.width);
    const scale = side(camera, size);
    const pixels = diameter(camera, size, this.count) * ratio;
    gl.uniform2f(parts.uniforms.middle, camera.x, camera.y);
    gl.uniform2f(parts.uniforms.scale, (2 * scale) / size.width, (2 * scale) / size.height);
    gl.uniform1f(parts.uniforms.size, pixels);
    gl.uniform1f(parts.uniforms.opacity, Math.min(0.4 + pixels / 10, 0.88));
    gl.uniform3f(parts.uniforms.dimmed, this.dimmed[0]!, this.dimmed[1]!, this.dimmed[2]!);
    gl.uniform1i(parts.uniforms.colours, 0);
  }

  /** Draw some points over what is drawn. */
  draw(first: number, end: number): void {
    if (end > first && this.parts && !this.gl.isContextLost()) this.gl.drawArrays(this.gl.POINTS, first, end - first);
  }
}
