key_provider "static" "a" {
  key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
}
key_provider "static" "b" {
  key = "f0e1d2c3b4a5968778695a4b3c2d1e0f"
}
key_provider "xor" "k" {
  a = key_provider.static.a
  b = key_provider.static.b
}
method "aes_gcm" "m" {
  keys = key_provider.xor.k
}
state {
  method = method.aes_gcm.m
}
