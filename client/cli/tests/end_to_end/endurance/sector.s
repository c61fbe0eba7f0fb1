# The first sector of a machine's disk: takes a name from the processor, says it with the numbers from 0 on to the serial
# port, at every second tick of the clock, and ends through the device isa-debug-exit with an odd code if the last byte says
# so. `as --32 sector.s -o sector.o && objcopy -O binary -j .text sector.o sector` makes the bytes in tasks.rs, and that last one.
.code16
.intel_syntax noprefix
start:
  xor ax, ax
  mov ds, ax
  mov ss, ax
  mov sp, 0x7c00
  sti
again:
  rdrand edi
  jnc again
  xor esi, esi
  mov eax, edi
  xor edx, edx
  mov ebx, 100
  div ebx
  mov bp, dx
  xor edx, edx
  mov ebx, 20
  div ebx
  mov [0x7df0], edx
  mov cx, 6
warm:
  hlt
  loop warm
  call newline
next:
  cmp byte ptr [0x7c00 + mode - start], 0
  je say
  cmp esi, [0x7df0]
  je end
say:
  call name
  mov eax, esi
  call decimal
  call newline
  inc esi
  hlt
  hlt
  jmp next
end:
  call name
  mov al, 'e'
  call byte_out
  mov al, 'n'
  call byte_out
  mov al, 'd'
  call byte_out
  mov al, 's'
  call byte_out
  mov al, ' '
  call byte_out
  movzx eax, bp
  lea eax, [eax*2+1]
  call decimal
  call newline
  mov dx, 0x501
  mov ax, bp
  out dx, al
stay:
  hlt
  jmp stay
name:
  mov ecx, 8
digit:
  rol edi, 4
  mov ax, di
  and al, 15
  add al, '0'
  cmp al, '9'
  jbe low
  add al, 39
low:
  call byte_out
  dec ecx
  jnz digit
  mov al, ' '
byte_out:
  push ax
  mov dx, 0x3fd
wait:
  in al, dx
  test al, 32
  jz wait
  pop ax
  mov dx, 0x3f8
  out dx, al
  ret
decimal:
  xor edx, edx
  mov ebx, 10
  div ebx
  push dx
  test eax, eax
  jz last
  call decimal
last:
  pop ax
  add al, '0'
  jmp byte_out
newline:
  mov al, 10
  jmp byte_out
mode:
  .byte 1
