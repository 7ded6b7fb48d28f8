key_provider "aws_kms" "a" {
  kms_key_id = "arn:aws:kms:eu-central-1:000000000000:key/11111111-2222-3333-4444-555555555555"
  key_spec = "AES_256"
  region = "eu-central-1"
  encryption_context = {
    stack = "network"
    env   = "prod"
  }
  skip_credentials_validation = true
  skip_requesting_account_id = true
}
method "aes_gcm" "m" {
  keys = key_provider.aws_kms.a
}
state {
  method = method.aes_gcm.m
}
