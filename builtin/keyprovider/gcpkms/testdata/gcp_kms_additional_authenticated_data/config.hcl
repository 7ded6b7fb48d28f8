key_provider "gcp_kms" "g" {
  kms_encryption_key = "projects/throwaway/locations/global/keyRings/ring/cryptoKeys/tofu"
  key_length = 32
  additional_authenticated_data = "bmV0d29yaw=="
}
method "aes_gcm" "m" {
  keys = key_provider.gcp_kms.g
}
state {
  method = method.aes_gcm.m
}
