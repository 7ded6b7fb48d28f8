key_provider "openbao" "b" {
  key_name = "tofu-key"
  associated_data = "bmV0d29yaw=="
}
method "aes_gcm" "m" {
  keys = key_provider.openbao.b
}
state {
  method = method.aes_gcm.m
}
