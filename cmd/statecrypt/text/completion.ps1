Register-ArgumentCompleter -Native -CommandName statecrypt -ScriptBlock {
  param($word, $line, $cursor)
  $flags = @{
    'COMMAND' = 'FLAGS'
  }
  $before = @($line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { $_.Extent.Text })
  $command = $before[1]
  $words = if ($before -contains '--') {
    if ($before[-1] -eq '--') { 'terraform tofu' }
  } elseif ($before.Count -le 1) {
    'COMMANDS help'
  } elseif ($command -eq 'completion') {
    'bash zsh fish powershell'
  } elseif ($command -eq 'key-provider' -and $before.Count -eq 2) {
    'age'
  } else {
    $flags[$command]
  }
  # Without a result, PowerShell completes files.
  "$words" -split ' ' | Where-Object { $_ -and $_.StartsWith($word) } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }
}
