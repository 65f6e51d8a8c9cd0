import type { Gone } from "./gone.ts"
import { type AlsoGone, kept, type Last } from "./kept.ts"
import { type Only } from "./only.ts"
export type { Gone }
export { type AlsoGone, kept }
type Alias<T> = { [K in keyof T]?: T[K] } | "naïve — ü 🎉"
interface Shape { area(): number; readonly name?: string }
declare const outside: number
declare function nowhere(x: string): void
declare module "x" { export const y: number }
declare global { interface Window { z: 1 } }
declare enum Far { A, B }
const a = kept as unknown as Alias<string>
(function () { return 1 })()
const b = a satisfies object
[1, 2].forEach((n: number): void => { void n })
let definite!: number
let typed: Array<Map<string, number>> = []
function over(x: string): string
function over(x: number): number
function over(x: any): any { return x }
export function exported(x: string): void
export function exported(x: unknown): void { void x }
function withThis(this: Shape, x?: number, ...rest: string[]): asserts x is number { void rest }
function onlyThis(this: void) { return 1 }
const multi = (x: number, y?: string):
  Promise<
    string
  > => Promise.resolve(y! + x)
const generic = <T,>(x: T): T => x
const spread = async <
  T,
>(x: T) => x
function returnsArrow() {
  return <
    T
  >(x: T) => x
}
const call = over<string>("x") as string
const made = new Map<string, Array<number>>()
const made2 = new Map<string, number>
const inst = over<number>
const tagged = String.raw<string>`x${1 as number}y`
const chain = made?.get<string>?.("x")!.length
abstract class Base<T> { abstract go(): void; protected constructor(readonly_: T) { void readonly_ } }
class Derived<T> extends Base<T> implements Shape, Gone<T> {
  private readonly x: number = 1
  public static y?: string
  declare nothing: string
  override name = "d" as const
  public ["computed"](): number { return 1 }
  private *gen(): Generator<number> { yield 1 as number }
  get: string
  set: number
  static: boolean
  definite!: number
  optional?(): void
  optional2?(a: string): void
  [key: string]: any
  readonly #secret: number = 3
  protected async load<T>(this: Derived<T>, a: T): Promise<T> { return a }
  area(): number { return this.#secret!; }
  constructor(x: string)
  constructor(x: any) { super(x) }
  static { const z: number = 1; void z }
}
const Anonymous = class implements Shape { area() { return 1 } }
for (const k of Object.keys({}) as string[]) { void k }
for (let i: number = 0, j = 1 as number; i < j; i++) { break }
try { throw 1 as unknown } catch (e: unknown) { void e }
if (a) b as any
else call as string
const object = { method<T>(x: T): T { return x }, get g(): number { return 1 }, set g(v: number) { void v }, async *m<T>(): AsyncGenerator<T> {} }
const { p, q: [r] }: { p: number; q: number[] } = { p: 1, q: [2] }
const cond = a ? (x: number): number => x : null
const predicate = (x: unknown): x is string => typeof x === "string"
const éclair: "é" = "é" as "é"; const after = 1
type Fn = new (...args: any[]) => void
let x = 1 as any /* why */ // tail
;[x] = [2]
label: while (true) { break label }
const optionalCall = over?.<string>("x")
export default abstract class Main<T> { abstract x: T }
export type Tail = typeof over
