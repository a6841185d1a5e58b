;; Counts line feeds, and emits their number and a line feed. Parts are counted in parallel.
;;
;; A program in the text form of WebAssembly, without a compiler and without an allocator:
;;   wat2wasm line_count.wat        (Debian: wabt), or
;;   wasm-tools parse line_count.wat -o line_count.wasm
(module
  (import "frit" "emit" (func $emit (param i32 i32) (result i32)))

  ;; Bytes 0 to 65535: pieces of the file, which have at most 64 KiB without lines.
  ;; Bytes 65536 to 65543: the count as a number of 8 bytes. Bytes 65544 to 65567: its digits.
  (memory (export "memory") 2)
  (global $count (mut i64) (i64.const 0))

  (func (export "buffer") (param $len i32) (result i32)
    (i32.const 0))

  (func (export "scan") (param $at i32) (param $len i32) (param $offset i64) (result i32)
    (local $end i32)
    (local.set $end (i32.add (local.get $at) (local.get $len)))
    (loop $next
      (if (i32.lt_u (local.get $at) (local.get $end))
        (then
          (global.set $count
            (i64.add
              (global.get $count)
              (i64.extend_i32_u (i32.eq (i32.load8_u (local.get $at)) (i32.const 10)))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br $next))))
    (i32.const 0))

  ;; State of a part: the count.
  (func (export "partial")
    (i64.store (i32.const 65536) (global.get $count))
    (drop (call $emit (i32.const 65536) (i32.const 8))))

  (func (export "merge") (param $at i32) (param $len i32)
    (global.set $count (i64.add (global.get $count) (i64.load (local.get $at)))))

  ;; Writes the digits from the last one, before the line feed at byte 65567.
  (func (export "finish")
    (local $digit i32)
    (local.set $digit (i32.const 65567))
    (i32.store8 (local.get $digit) (i32.const 10))
    (loop $next
      (local.set $digit (i32.sub (local.get $digit) (i32.const 1)))
      (i32.store8
        (local.get $digit)
        (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (global.get $count) (i64.const 10)))))
      (global.set $count (i64.div_u (global.get $count) (i64.const 10)))
      (br_if $next (i64.ne (global.get $count) (i64.const 0))))
    (drop (call $emit (local.get $digit) (i32.sub (i32.const 65568) (local.get $digit))))))
