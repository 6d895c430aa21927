# SPDX-License-Identifier: Apache-2.0
"""Speech: Whisper, and wav2vec 2.0 with CTC on sounds of different lengths."""

import torch
import transformers

device = torch.accelerator.current_accelerator() or torch.device("cpu")
data = torch.Generator().manual_seed(2)
losses = []


def train(model, optimizer, batches):
    for x, y in batches:
        loss = model(x.to(device), labels=y.to(device)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


torch.manual_seed(0)
ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
depth = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
width = {"d_model": 32, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": 64, "num_mel_bins": 16, "max_source_positions": 50}
whisper = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(**ends, **depth, **width, dropout=0.1)).to(device).train()
batches = [(torch.randn(2, 16, 100, generator=data), torch.randint(3, 64, (2, n), generator=data)) for n in (7, 5)]
train(whisper, torch.optim.Adam(whisper.parameters(), lr=1e-3), batches)

torch.manual_seed(0)
sound = {"conv_dim": (16, 16), "conv_stride": (5, 4), "conv_kernel": (10, 8), "num_feat_extract_layers": 2}
place = {"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "layerdrop": 0.0, "mask_time_prob": 0.0}
width = {"vocab_size": 20, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
config = transformers.Wav2Vec2Config(**sound, **place, **width, ctc_loss_reduction="mean")
wav2vec = transformers.Wav2Vec2ForCTC(config).to(device).train()
batches = [(torch.randn(2, n, generator=data), torch.randint(1, 20, (2, 6), generator=data)) for n in (800, 1000)]
train(wav2vec, torch.optim.RMSprop(wav2vec.parameters(), lr=1e-4), batches)
print("device", device)
print("losses", losses)
